"""Accumulators: each aggregate's update, merge and finish with their state types, declared together."""

from kquery_spark.physical.aggregates.accumulator import Accumulator, accumulator
from kquery_spark.physical.aggregates import basic as _basic  # fills the table

__all__ = ["Accumulator", "accumulator"]
del _basic
