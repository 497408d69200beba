"""Stages on Spark: map tasks and reduce tasks through ``mapInArrow``, Spark's shuffle in between."""

from kquery_spark.runtime.spark.frames import to_dataframe

__all__ = ["to_dataframe"]
