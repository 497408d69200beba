"""Reads a private attribute of PySpark's GroupedData, the result of ``groupBy``."""

from __future__ import annotations

from pyspark.sql import DataFrame, GroupedData


def grouped_frame(grouped: GroupedData) -> DataFrame:
    """Return the DataFrame whose rows are grouped."""
    return grouped._df
