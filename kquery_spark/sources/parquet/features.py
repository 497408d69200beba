"""Features of Parquet files: those that the engine reads, and those that it leaves to Spark."""

from __future__ import annotations

from kquery_spark.sources.features import Feature
from kquery_spark.sources.file_features import BUCKETS

BROTLI = Feature("Brotli", reason="{column} of {file} is compressed by Brotli, which Spark has no codec for.")
NANOSECONDS = Feature(
    "times in nanoseconds", reason="{column} of {file} is in nanoseconds, which Spark does not read."
)
CONVERTED_INT96 = Feature(
    "INT96 times under `int96TimestampConversion`",
    reason="{column} of {file} is of INT96 times, which Spark converts",
)
SHREDDED = Feature(
    "shredded variants",
    reason="{column} of {file} is a shredded variant, parts of which are columns of their own.",
)

FEATURES = (
    Feature(
        "dates and times of the hybrid calendar",
        "in the modes LEGACY and CORRECTED; in EXCEPTION mode old ones are Spark's to refuse",
    ),
    Feature("field ids", "where names and ids mean the same columns"),
    Feature("`_metadata.row_index`"),
    Feature("variants", "that are not shredded"),
    *BUCKETS,
    SHREDDED,
    BROTLI,
    NANOSECONDS,
    CONVERTED_INT96,
)
