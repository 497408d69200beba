"""Finds the values of a pivot column in the engine, for ``pivot`` and for ``crosstab``, which Spark runs as a pivot.

``groupBy(...).pivot("status")`` without values needs the distinct values of the column, one for each new column. Spark runs
a query for them as soon as ``pivot`` is called, and sorts them. It does so in the JVM, where ``kq.enable`` sees no action.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kquery_spark.accelerate.api import kquery_plan
from kquery_spark.accelerate.options import Fallback, When
from kquery_spark.spark_bridge.frames.grouped_data import pivot_by, zeros_for_nulls
from kquery_spark.spark_bridge.frames.lazy_dataframe import LazyDataFrame
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS

_MAX_VALUES_SETTING = "spark.sql.pivotMaxValues"
# Types whose values survive the round trip from the engine through Python to Spark unchanged. A string type with a
# collation has another name, so it is not among them.
_TYPES = frozenset({"string", "boolean", "tinyint", "smallint", "int", "bigint"})


def crosstab(frame: DataFrame, first: str, second: str, fallback: Fallback, when: When) -> DataFrame | None:
    """Count all pairs of values of two columns: a row for each value of ``first``, a column for each value of ``second``.

    The result has the plan that Spark's ``StatFunctions.crossTabulate`` builds. None if Spark has to run ``crosstab``: if it
    has to find the values of ``second`` (see ``pivot_values``), or if it rejects a column and has to raise its own error.
    """
    try:
        names = F.when(F.isnull(F.col(first)), "null").otherwise(F.col(first).cast("string"))
        # Spark removes backticks, which would end a quoted name of a new column.
        unquoted = F.regexp_replace(F.col(second).cast("string"), "`", "")
        values = F.when(F.isnull(F.col(second)), "null").otherwise(unquoted)
        frame.select(names)  # raises an error before the query of the values runs
    except SPARK_ERRORS:
        return None
    found = pivot_values(frame, values, fallback, when)
    if found is None:
        return None
    try:
        grouped = frame.groupBy(names.alias(f"{first}_{second}"))
        return zeros_for_nulls(pivot_by(grouped, values, found).count())
    except SPARK_ERRORS:
        return None


def pivot_values(frame: DataFrame, column: str | Column, fallback: Fallback, when: When) -> list[Any] | None:
    """Return the distinct values of a column of ``frame`` in Spark's order.

    None if Spark has to find them: if the type is not in ``_TYPES``, if Spark rejects the column, if the query falls
    back to Spark, or if there are more values than Spark allows. In the last case, Spark then raises its error.
    Raises Unsupported with ``fallback="error"`` if the engine declines the query.
    """
    try:
        selected = frame.select(column)
        if not _has_supported_type(selected.schema):
            return None
        max_values = int(str(frame.sparkSession.conf.get(_MAX_VALUES_SETTING)))
        if max_values >= 2**31 - 1:  # one more value than allowed does not fit into the int of ``limit``
            return None
        query = selected.toDF("value").distinct().limit(max_values + 1).sort("value")
        fast = kquery_plan(query, fallback=fallback, when=when)
    except SPARK_ERRORS:
        return None
    if not isinstance(fast, LazyDataFrame):
        return None
    values = [row[0] for row in fast.collect()]
    return values if len(values) <= max_values else None


def _has_supported_type(schema: StructType) -> bool:
    return len(schema) == 1 and schema[0].dataType.simpleString() in _TYPES
