"""Lists the features of files and catalog tables that the engine reads, and those for which it falls back to Spark."""

from __future__ import annotations

from kquery_spark.sources.features import Feature

FILE_BLOCKS = Feature(
    "the same of larger files, which Spark may cut",
    reason="{column} of files that Spark may split is not supported",
)
FILE_COLUMN = Feature(
    "other hidden columns of files",
    reason="the metadata column {column} is not supported",
)
UNKNOWN_OPTION = Feature(
    "options that the format's entry does not list", reason="files with the option {option} are not supported"
)
MANY_REMOTE_FILES = Feature(
    "more than 500 files of an object store or of HDFS, of less than 2 MB each for each task that runs at once, or of a "
    "format whose footers the driver does not keep",
    reason="reading {count:,} files is not supported: the driver would take too long to read the footers of more "
    "than {limit} remote files of less than about {megabytes:,} MB",
)
LARGE_FOOTERS = Feature(
    "files whose footers take more than 256 MB in memory, for example 15,000 files of three columns, on an object store or "
    "HDFS, or of less than 2 MB each for each task that runs at once",
    reason="reading {count:,} files is not supported: their footers would take about {megabytes:,} MB of the "
    "driver's memory, which caches at most 256 MB of them",
)
BUCKETS = (
    Feature(
        "buckets of tables",
        "joins, aggregates and windows by their columns shuffle nothing where each task gets about as much to read; a join "
        "with another, smaller table shuffles that one only; filters on their only column leave buckets out",
    ),
)
"""Bucketing, for formats that return exactly the values that were written, because these decided the bucket of a row."""

ANY_FILES = (
    Feature("partition directories, columns that older files lack, nested columns"),
    Feature(
        "`_metadata.file_path`, `file_name`, `file_size`, `file_modification_time`, `input_file_name()`",
        "a filter on them leaves whole files out",
    ),
    Feature(
        "`_metadata` as a whole, `_metadata.file_block_start`, `file_block_length`, `input_file_block_start()`, "
        "`input_file_block_length()`",
        "of files that Spark reads in one piece: of at most `spark.sql.files.openCostInBytes` (4 MB)",
    ),
    FILE_BLOCKS,
    FILE_COLUMN,
    UNKNOWN_OPTION,
    MANY_REMOTE_FILES,
    LARGE_FOOTERS,
)
"""Features of files of any format; a format's entry lists its own."""

FILLED_WITHOUT_VECTORS = Feature(
    "the same without Spark's vectorized reader",
    reason="default values that files may lack are not supported while {setting} is false",
)
OTHER_DEFAULTS = Feature(
    "the same in tables of other formats",
    reason="{title} tables with default values, which files may lack, are not supported",
)
DEFAULT_OF_TYPE = Feature(
    "defaults of binary and nested columns",
    reason="the default of {column}, a {type}, is not supported",
)
WIDE_DEFAULT = Feature(
    "defaults of decimals of more than 18 digits",
    reason="the default of {column}, which has more than 18 digits, is not supported",
)

NO_BUCKET = Feature(
    "bucketed tables with files whose names do not contain the bucket",
    reason="{file} is not in a bucket of its table, so Spark may raise an error",
    declines_query=True,  # below its own joins and aggregates, Spark reads the table by buckets and raises an error
)

ANY_TABLES = (
    Feature(
        "Hive tables that Spark reads with its own readers",
        "while Spark converts them, as it does by default",
    ),
    Feature(
        "bucketed tables",
        "by their buckets where the format has a row for these above, else as other tables are",
    ),
    NO_BUCKET,
    Feature("CHAR and VARCHAR columns", "of files that do not pad them"),
    FILLED_WITHOUT_VECTORS,
    OTHER_DEFAULTS,
    DEFAULT_OF_TYPE,
    WIDE_DEFAULT,
    Feature("Hive tables in other formats", reason="Hive tables in their own formats are not supported"),
)
"""Features of the session catalog's tables."""
