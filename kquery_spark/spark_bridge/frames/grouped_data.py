"""PySpark's GroupedData, the result of ``groupBy``: its DataFrame, and pivots with many values."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, GroupedData

from kquery_spark.spark_bridge.session.bridge import get_bridge

_MAX_SINGLE_VALUES = 100  # py4j sends each value of a list in a call of its own, which takes 0.1 ms


def grouped_frame(grouped: GroupedData) -> DataFrame:
    """Return the DataFrame whose rows are grouped."""
    return grouped._df


def pivot_by(grouped: GroupedData, column: str, values: list[Any]) -> GroupedData:
    """Return ``grouped.pivot(column, values)``. values: sorted and distinct, so that NULL and "" can only come first."""
    strings = [value for value in values if isinstance(value, str) and value]
    others = values[: len(values) - len(strings)]
    if len(strings) <= _MAX_SINGLE_VALUES or any(others):
        return grouped.pivot(column, values)
    java_values = get_bridge(grouped_frame(grouped).sparkSession).jvm.new_list(strings)
    if java_values is None:
        return grouped.pivot(column, values)
    for other in reversed(others):
        java_values.add(0, other)
    return grouped.pivot(column, java_values)
