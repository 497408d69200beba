"""Lists the features of CSV files that the engine reads, and those for which it falls back to Spark."""

from __future__ import annotations

from kquery_spark.sources import text_format
from kquery_spark.sources.features import Feature

CORRUPT_RECORDS = Feature(
    "a column of corrupt records", reason="CSV files with a column of corrupt records are not supported"
)

FEATURES = (text_format.PATTERNS, CORRUPT_RECORDS)
