"""Accumulators: each declares its state types and its phases (update, merge, finish) together."""

from kquery_spark.physical.aggregates import basic as _basic  # importing these fills the table
from kquery_spark.physical.aggregates import bitmaps as _bitmaps
from kquery_spark.physical.aggregates import extreme_rows as _extreme_rows
from kquery_spark.physical.aggregates import listagg as _listagg
from kquery_spark.physical.aggregates import lists as _lists
from kquery_spark.physical.aggregates import moments as _moments
from kquery_spark.physical.aggregates import percentiles as _percentiles
from kquery_spark.physical.aggregates import picking as _picking
from kquery_spark.physical.aggregates import regressions as _regressions
from kquery_spark.physical.aggregates.accumulator import Accumulator, accumulator

__all__ = ["Accumulator", "accumulator"]
del _basic, _bitmaps, _extreme_rows, _listagg, _lists, _moments, _percentiles, _picking, _regressions
