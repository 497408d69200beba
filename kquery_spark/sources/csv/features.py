"""Features of CSV files: those that the engine reads, and those that it leaves to Spark."""

from __future__ import annotations

from kquery_spark.sources import text_format
from kquery_spark.sources.features import Feature

CORRUPT_RECORDS = Feature(
    "a column of corrupt records", reason="CSV files with a column of corrupt records are read by Spark"
)

FEATURES = (text_format.PATTERNS, CORRUPT_RECORDS)
