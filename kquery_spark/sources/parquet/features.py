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

FEATURES = (
    Feature(
        "dates and times of the hybrid calendar",
        "in the modes LEGACY and CORRECTED; in EXCEPTION mode old ones are Spark's to refuse",
    ),
    Feature("field ids", "where names and ids mean the same columns"),
    Feature("`_metadata.row_index`"),
    *BUCKETS,
    BROTLI,
    NANOSECONDS,
    CONVERTED_INT96,
)
