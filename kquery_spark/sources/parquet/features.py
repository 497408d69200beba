"""Features of Parquet files: those that the engine reads, and those that it leaves to Spark."""

from __future__ import annotations

from kquery_spark.sources.features import Feature
from kquery_spark.sources.file_features import BUCKETS

BROTLI = Feature("Brotli", reason="{column} of {file} is compressed by Brotli, which Spark has no codec for")
NANOSECONDS = Feature(
    "times in nanoseconds", reason="{column} of {file} is in nanoseconds, which Spark does not read"
)
CONVERTED_INT96 = Feature(
    "INT96 times under `int96TimestampConversion`, in files of other writers than Spark",
    reason="{column} of {file} is of INT96 times, which Spark converts",
)
SHREDDED = Feature(
    "shredded variants without `spark.sql.variant.allowReadingShredded`",
    reason="{column} of {file} is a shredded variant, which Spark refuses to read by its settings",
)
SHREDDED_TYPE = Feature(
    "shredded variants with parts of rare types",
    reason="{column} of {file} is a shredded variant with {kind} in it",
)
SHREDDED_UNCOMPILED = Feature(
    "shredded variants until the engine's loops are compiled",
    reason="{column} of {file} is a shredded variant, and the loops that read it are not compiled on this machine yet",
)

FEATURES = (
    Feature(
        "dates and times of the hybrid calendar",
        "in the modes LEGACY and CORRECTED; in EXCEPTION mode old ones are Spark's to refuse",
    ),
    Feature("field ids", "where names and ids mean the same columns"),
    Feature("`_metadata.row_index`"),
    Feature("variants", "shredded ones, too, as Spark 4.1 and later write them"),
    *BUCKETS,
    SHREDDED,
    SHREDDED_TYPE,
    SHREDDED_UNCOMPILED,
    BROTLI,
    NANOSECONDS,
    CONVERTED_INT96,
)
