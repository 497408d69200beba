"""Reads Delta tables in Spark's plans: the Parquet files that Delta's own index lists, and their deletion vectors.

The optimized plan does not contain the deletion vectors, because Delta applies them when it plans the scan. They are part of
the metadata that Delta's index attaches to each file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from kquery_spark.sources.deletes.deletion_vectors import DeletionVector
from kquery_spark.sources.delta.column_mapping import MODES, UNMAPPED, Column, stored_column
from kquery_spark.sources.delta.deletion_vectors import encoded_deletion_vector
from kquery_spark.sources.delta.features import DELETED_ROWS, OTHER_MAPPING
from kquery_spark.sources.parquet.format import PARQUET
from kquery_spark.spark_bridge.jvm.calls import Jvm

DELTA_PACKAGE = "org.apache.spark.sql.delta."
FORMAT_CLASS = f"{DELTA_PACKAGE}DeltaParquetFileFormat"
"""Delta's FileFormat."""
RELATION_CLASSES = f"{DELTA_PACKAGE}DeltaLog$$anon$"
"""The prefix of Delta's subclasses of HadoopFsRelation; when Delta prepares a scan, it makes a plain relation."""
FILE_FORMAT = PARQUET
"""The format of Delta's data files."""
LATEST, PREPARED = f"{DELTA_PACKAGE}files.TahoeLogFileIndex", f"{DELTA_PACKAGE}stats.PreparedDeltaFileIndex"
"""The file indexes of a table's snapshot; other indexes list files for Delta's own commands and for change data."""
_STRUCT, _FIELD = "org.apache.spark.sql.types.StructType", "org.apache.spark.sql.types.StructField"
_ROW_ID = "row_id"
_VECTOR, _FILTER_TYPE = "row_index_filter_id_encoded", "row_index_filter_type"
_DROPS_DELETED = "Some(IF_CONTAINED)"
_STATUS = "org.apache.spark.sql.execution.datasources.FileStatusWithMetadata"


def stored_columns(columns: Sequence[Column], file_format: Any, jvm: Jvm) -> list[Column]:
    """Translate the columns of a relation, whose schema has the table's names, to the names and ids in the files.

    file_format: the relation's DeltaParquetFileFormat.
    """
    mode = str(file_format.columnMappingMode().name())
    if mode not in MODES:
        raise OTHER_MAPPING.declined(mode=mode)
    if mode == UNMAPPED:
        return list(columns)
    mapped = json.loads(jvm.text(file_format.referenceSchema(), _STRUCT, "json"))["fields"]
    by_name = {column["name"]: column for column in mapped}
    return [stored_column(column, by_name[column["name"]], mode) for column in columns]


def tracks_rows(file_format: Any, jvm: Jvm) -> bool:
    """Return whether a relation's ``_metadata`` has row ids (row tracking). file_format: the relation's FileFormat."""
    names = jvm.map_sequence(file_format.metadataSchemaFields(), jvm.getter(_FIELD, "name"))
    return _ROW_ID in jvm.strings(names)


def has_newest_snapshot(index: Any, jvm: Jvm) -> bool:
    """Return whether a prepared scan reads the newest version of its table in this JVM; False for other indexes."""
    if jvm.class_name(index) != PREPARED:
        return False
    return bool(index.preparedScan().version() == index.deltaLog().unsafeVolatileSnapshot().version())


def deletion_vectors(
    of_files: Callable[[Any], list[str]], table: str, jvm: Jvm
) -> list[DeletionVector | None]:
    """The deletion vector of each file, or None.

    of_files: evaluates a function of the file's status for each listed file, and returns the strings that Scala prints.
    table: the table's path.
    """
    strings = of_files(_metadata(_VECTOR, jvm))
    if all(text == "None" for text in strings):
        return [None] * len(strings)
    types = of_files(_metadata(_FILTER_TYPE, jvm))
    vectors: list[DeletionVector | None] = []
    for text, filter_type in zip(strings, types, strict=True):
        if text != "None" and filter_type != _DROPS_DELETED:
            raise DELETED_ROWS.declined()
        vectors.append(None if text == "None" else encoded_deletion_vector(text[5:-1], table))
    return vectors


def _metadata(key: str, jvm: Jvm) -> Any:
    """The Scala function that returns an entry of Delta's metadata of a file as an Option, given the file's status."""
    return jvm.steps(
        f"file metadata {key}",
        (_STATUS, "metadata"),
        ("scala.collection.Map", "get", "java.lang.Object", key),
    )
