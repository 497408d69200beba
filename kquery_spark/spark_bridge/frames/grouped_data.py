"""PySpark's GroupedData, the result of ``groupBy``: its DataFrame, and pivots with many values."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame, GroupedData

from kquery_spark.spark_bridge.session.bridge import get_bridge

_MAX_SINGLE_VALUES = 100  # py4j sends each value of a list in a call of its own, which takes 0.1 ms


def grouped_frame(grouped: GroupedData) -> DataFrame:
    """Return the DataFrame whose rows are grouped."""
    return grouped._df


def pivot_by(grouped: GroupedData, column: str | Column, values: list[Any]) -> GroupedData:
    """Return ``grouped.pivot(column, values)``, which needs only a few py4j calls even for many strings.

    column: a name, or an expression, which the JVM's ``pivot`` accepts, but not PySpark's. values: sorted and distinct
    values of one type, so NULL and "" can only come first.
    """
    strings = [value for value in values if isinstance(value, str) and value]
    java_values: Any = None
    if len(strings) > _MAX_SINGLE_VALUES:
        java_values = get_bridge(grouped_frame(grouped).sparkSession).jvm.list_of_strings(strings)
    if java_values is None:
        java_values = values
    else:
        for null_or_empty in reversed(values[: len(values) - len(strings)]):
            java_values.add(0, null_or_empty)
    if isinstance(column, str):
        return grouped.pivot(column, java_values)
    return GroupedData(grouped._jgd.pivot(column._jc, java_values), grouped_frame(grouped))


def zeros_for_nulls(frame: DataFrame) -> DataFrame:
    """Replace NULL by 0 in numeric columns. PySpark's ``fillna(0)`` passes 0.0, so bigint columns would stay nullable."""
    return DataFrame(frame._jdf.na().fill(0), frame.sparkSession)
