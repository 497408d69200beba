"""Lists the features of ORC files that the engine reads, and those for which it falls back to Spark."""

from __future__ import annotations

from kquery_spark.sources.features import Feature
from kquery_spark.sources.file_features import BUCKETS

PADDED = Feature(
    "CHAR and VARCHAR columns", reason="{column} is of a char or varchar type, which ORC files may pad"
)
UNNAMED = Feature(
    "files without column names, as old Hive wrote them",
    reason="ORC files without column names are not supported",
)

FEATURES = (
    *BUCKETS,
    Feature(
        "statistics of stripes",
        "statistics of integers, decimals, strings, and dates since 1582 prune stripes; the row index inside of a stripe is "
        "not used",
    ),
    PADDED,
    UNNAMED,
)
