"""Lists the features of Delta tables that the engine reads, and those for which it falls back to Spark."""

from __future__ import annotations

from kquery_spark.sources.features import Feature, SourceSection

OTHER_MAPPING = Feature(
    "other modes of column mapping",
    reason="Delta tables with the column mapping mode {mode} are not supported",
)
OTHER_INDEX = Feature(
    "change data (`table_changes`), files of Delta's own commands",
    reason="files that Delta lists by {index} are not supported",
)
CHANGED = Feature(
    "tables that change while a query is planned",
    reason="a table changed while its files were listed",
)
OLD_DELTA = Feature("Delta before 3.2", reason="tables of Delta releases before 3.2 are not supported")
DELETED_ROWS = Feature(
    "scans that request the deleted rows of files",
    reason="scans that request the deleted rows of a file are not supported",
)
ROW_TRACKING = Feature(
    "queries that read `_metadata` of tables with row tracking",
    reason="_metadata of tables with row tracking is not supported, because Delta's optimizer rewrites it",
    declines_query=True,  # if a part of an optimized plan is optimized again, Delta mixes up the fields
)

DELTA = SourceSection(
    title="Delta",
    introduction="""\
delta-spark 3.2 or later with Spark 3.5, 4.x with Spark 4.0 to 4.2. The files, the values of partitions and the
deletion vectors are those that Delta's own index lists for the snapshot of the query; nothing of the log is parsed
anew. Of tables with up to 100 files they are listed once a snapshot, not by a job of Spark for each query.""",
    features=(
        Feature("the latest version, `VERSION AS OF`, `TIMESTAMP AS OF`"),
        Feature(
            "pruning by partitions and by the log's statistics",
            "the engine prunes tables of up to 100 files, by partitions and by the files' own statistics; larger ones Delta "
            "prunes while it optimizes the query, and the engine takes the files that are left",
        ),
        Feature(
            "deletion vectors, in files and in the log",
            "checksums, lengths and counts are checked; a damaged vector is an error",
        ),
        Feature("column mapping by name, also of fields inside structs, arrays and maps"),
        Feature(
            "column mapping by id",
            "where the files' field ids and physical names agree, as in tables that Delta wrote; else Spark",
        ),
        Feature(
            "columns and fields that older files lack; widened types",
            "structs whose fields are missing in older files are not supported before Spark 4.1",
        ),
        Feature("generated, identity and default columns", "they are plain columns of the files"),
        OTHER_MAPPING,
        OTHER_INDEX,
        CHANGED,
        OLD_DELTA,
        DELETED_ROWS,
        Feature("`_metadata`, `input_file_name()`", "times of files are those in the log"),
        ROW_TRACKING,
        Feature("streams", reason="streams are not supported"),
        Feature(
            "writes of frames, `INSERT`, `CREATE TABLE AS SELECT`",
            "with `kq.enable(spark)` their rows come from the engine ([Writes](guide/writes.md))",
        ),
        Feature(
            "`MERGE`, `UPDATE`, `DELETE`, `OPTIMIZE`",
            reason="their queries are made inside the JVM",
            note="with `kq.enable(spark)` they are as right as without",
        ),
    ),
    closing="""\
Without Spark, `ExecutionContext.register_delta(name, path, version=None)` reads the same tables by what the package
`deltalake` says of them (`pip install 'kquery-spark[delta]'`): deletion vectors, column mapping, partitions,
versions. Tables that are partitioned by timestamps need a context in the time zone UTC.""",
)
