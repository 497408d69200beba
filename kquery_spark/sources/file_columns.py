"""Metadata columns about the file that a row is from. They have one value per file, like partition columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.sources.file_relation import FileRelation, ListedFile
from kquery_spark.types import names as t

METADATA = "_metadata"
"""The hidden struct column of metadata that every table of files has."""

BLOCK_FIELDS = ("file_block_start", "file_block_length")
"""Fields about the part of a file that a Spark task reads; they are constant for a file that Spark reads in one piece."""

METADATA_FIELDS = ("file_path", "file_name", "file_size", "file_modification_time", *BLOCK_FIELDS)
"""Fields that have one value per file."""

ROW_INDEX = "row_index"
"""The field with the position of a row in its file, in formats that support it."""

INPUT_FILE = "input_file_name()"
"""The column for the result of ``input_file_name()``."""

# Characters in a path that java.net.URI does not escape.
_UNQUOTED = "/_-!.~'()*:@&=+$,;"


def metadata_column(field: str) -> str:
    """The name of the engine's column for a field of ``_metadata``."""
    return f"{METADATA}.{field}"


def has_own_metadata(relation: FileRelation) -> bool:
    """True if the table itself has a column named ``_metadata``."""
    return METADATA in relation.table_names


def with_file_columns(relation: FileRelation, time_zone: str, whole_bytes: int) -> FileRelation:
    """Add a partition column for each metadata field that the engine supports.

    whole_bytes: Spark reads a file of up to this size in one piece.
    """
    fields = [
        pa.field(metadata_column("file_path"), t.STRING, nullable=False),
        pa.field(metadata_column("file_name"), t.STRING, nullable=False),
        pa.field(metadata_column("file_size"), t.LONG, nullable=False),
        pa.field(metadata_column("file_modification_time"), t.timestamp(time_zone), nullable=False),
        pa.field(INPUT_FILE, t.STRING, nullable=False),
    ]
    if all(file.size <= whole_bytes for file in relation.files):
        fields += [pa.field(metadata_column(name), t.LONG, nullable=False) for name in BLOCK_FIELDS]
    hidden = {*(field.name for field in fields), metadata_column(ROW_INDEX)}
    conflicts = hidden & {*relation.stored_names, *relation.table_names}
    if conflicts:
        raise Unsupported(f"a table with a column called {min(conflicts)} is not supported")
    schema = pa.schema([*relation.partition_schema, *fields])
    files = tuple(
        replace(file, partition=(*file.partition, *_metadata_values(file, fields))) for file in relation.files
    )
    return replace(relation, files=files, partition_schema=schema)


def _metadata_values(file: ListedFile, fields: Sequence[pa.Field]) -> list[pa.Scalar]:
    values = (
        _file_path(file),
        file.uri.rsplit("/", 1)[-1],
        file.size,
        file.modified_ms * 1000,
        file.uri,
        0,
        file.size,
    )
    return [pa.scalar(value, field.type) for value, field in zip(values, fields, strict=False)]


def _file_path(file: ListedFile) -> str:
    """A file's path with Java's escapes; raises Unsupported for a path that Java may escape differently."""
    scheme, colon, rest = file.path.partition(":")
    if not colon or not file.path.isascii() or not scheme.isalnum():
        raise Unsupported("the paths of files with characters beyond ASCII are not supported")
    return f"{scheme}:{quote(rest, safe=_UNQUOTED)}"
