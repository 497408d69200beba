"""Lists the features of Iceberg tables that the engine reads, and those for which it falls back to Spark."""

from __future__ import annotations

from kquery_spark.sources.features import Feature, SourceSection

EQUALITY_COLUMN = Feature(
    "equality deletes by columns that were dropped since, or inside of columns",
    reason="equality deletes by a column that the table no longer has are not supported",
)
EQUALITY_TYPE = Feature(
    "equality deletes by floating-point numbers, times of day, UUIDs",
    reason="equality deletes by {column}, a {kind}, are not supported",
)
MANY_EQUALITY_DELETES = Feature(
    "equality deletes of more than 20 million values",
    reason="equality deletes by {count:,} values are not supported",
)
OTHER_FILES = Feature("ORC and Avro files", reason="{kind} files of Iceberg tables are not supported")
OTHER_DELETE_FILES = Feature(
    "ORC and Avro files of deleted rows", reason="{kind} files of deleted rows are not supported"
)
ENCRYPTED = Feature("encrypted files", reason="encrypted files of Iceberg tables are not supported")
METADATA_TABLES = Feature("metadata tables (`t.files`)", reason="Iceberg's metadata tables are not supported")
NO_FIELD_IDS = Feature(
    "Parquet files without field ids in a table without a name mapping",
    reason="{file} has no field ids, which is not supported",
)
HYBRID_CALENDAR = Feature(
    "Parquet files of Spark with dates and times of the hybrid calendar",
    reason="{column} of {file} may have dates of the hybrid calendar, which Iceberg takes as they are",
)
INCREMENTAL = Feature(
    "incremental scans, changelogs",
    reason="Iceberg scans of anything but data files are not supported",
)
NESTED_DEFAULT = Feature(
    "initial defaults of fields inside columns",
    reason="the default of {field}, a field inside a column, is not supported",
)
METADATA_COLUMNS = Feature(
    "other metadata columns (`_partition`, `_deleted`, `_row_id`, ...)",
    reason="the metadata column {column} is not supported",
)

ICEBERG = SourceSection(
    title="Iceberg",
    introduction="""\
The Iceberg runtimes for Spark 3.5, 4.0 and 4.1. The data files, their deleted rows and the values of partitions are
those that Iceberg's own scan plans.""",
    features=(
        Feature("format versions 1, 2 and 3; branches, tags, `VERSION AS OF`"),
        Feature("hidden and identity partitions, also after the partitioning changed"),
        Feature("position deletes (version 2), deletion vectors (version 3)"),
        Feature(
            "equality deletes, as Flink writes them",
            "in Parquet files; each task holds those of its data files",
        ),
        Feature("columns and fields by field id: renamed, moved, dropped, added again"),
        Feature("initial defaults of columns"),
        Feature("promoted types"),
        Feature("metadata columns `_file`, `_pos`, `_spec_id`"),
        Feature("Parquet files"),
        Feature(
            "Parquet files without field ids, as `add_files`, `migrate` and `snapshot` leave them",
            "by the table's name mapping (`schema.name-mapping.default`)",
        ),
        EQUALITY_COLUMN,
        EQUALITY_TYPE,
        MANY_EQUALITY_DELETES,
        OTHER_FILES,
        OTHER_DELETE_FILES,
        NO_FIELD_IDS,
        HYBRID_CALENDAR,
        NESTED_DEFAULT,
        METADATA_TABLES,
        METADATA_COLUMNS,
        INCREMENTAL,
        ENCRYPTED,
    ),
    closing="""\
Without Spark, `ExecutionContext.register_iceberg(name, table, snapshot=None)` reads what the package `pyiceberg` plans
(`pip install 'kquery-spark[iceberg]'`), given one of its tables or the path of a metadata file; deletion vectors and
equality deletes are not read there.""",
)
