"""Features of Parquet files: those that the engine reads, and those for which it falls back to Spark."""

from __future__ import annotations

from kquery_spark.sources.features import Feature
from kquery_spark.sources.file_features import BUCKETS

BROTLI = Feature("Brotli", reason="{column} of {file} is compressed by Brotli, which is not supported")
DEPENDENT_PAGES = Feature(
    "delta-encoded strings of Parquet's Java library before 1.8",
    reason="{column} of {file} may have pages that depend on the previous page (PARQUET-246), which is not supported",
)
NANOSECONDS = Feature(
    "times in nanoseconds", reason="{column} of {file} is in nanoseconds, which is not supported"
)
CONVERTED_INT96 = Feature(
    "INT96 times under `int96TimestampConversion`, in files of other writers than Spark",
    reason="{column} of {file} has INT96 times that Spark converts, which is not supported",
)
SHREDDED = Feature(
    "shredded variants without `spark.sql.variant.allowReadingShredded`",
    reason="{column} of {file} is a shredded variant, which Spark's settings do not allow",
)
SHREDDED_TYPE = Feature(
    "shredded variants with parts of rare types",
    reason="{column} of {file} is a shredded variant with {kind} in it",
)
SHREDDED_UNCOMPILED = Feature(
    "shredded variants until the engine's loops are compiled",
    reason="{column} of {file} is a shredded variant, and the loops that read it {not_ready_clause}",
)

FEATURES = (
    Feature(
        "dates and times of the hybrid calendar",
        "in the modes LEGACY and CORRECTED; in EXCEPTION mode, Spark raises errors for old values",
    ),
    Feature("field ids", "where names and ids mean the same columns"),
    Feature("`_metadata.row_index`"),
    Feature("variants", "shredded ones, too, as Spark 4.1 and later write them"),
    *BUCKETS,
    SHREDDED,
    SHREDDED_TYPE,
    SHREDDED_UNCOMPILED,
    BROTLI,
    DEPENDENT_PAGES,
    NANOSECONDS,
    CONVERTED_INT96,
)
