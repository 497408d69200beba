"""Describes a table of files with Spark's schema and file list, before the engine opens any file."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from kquery_spark.sources.bucketing import BucketSpec
from kquery_spark.sources.deletes.deletion_vectors import DeletionVector


@dataclass(frozen=True)
class ListedFile:
    """One file of a relation; ``partition`` has a value for each field of the partition schema.

    uri: Java's form, in which the path is escaped (``file:///data/x%20y.parquet``). modified_ms: the modification time from
    the filesystem or the table format's log. deleted: the deletion vector of the file, if it has one.
    """

    uri: str
    size: int
    modified_ms: int
    partition: tuple[pa.Scalar, ...] = ()
    deleted: DeletionVector | None = None

    @property
    def path(self) -> str:
        """Hadoop's form of the path, with a scheme and not escaped (``file:/data/x y.parquet``)."""
        scheme, colon, escaped = self.uri.partition(":")
        return (
            f"{scheme}{colon}{unquote(escaped.removeprefix('//') if escaped.startswith('///') else escaped)}"
        )


@dataclass(frozen=True)
class TableColumns:
    """Maps a table's column names to the names in its files, for tables with column mapping.

    stored: the name in the files by the table's name, for all columns. fields: the table's field by the name in the files,
    for the columns that have a type in the engine.
    """

    stored: Mapping[str, str]
    fields: Mapping[str, pa.Field]


@dataclass(frozen=True)
class FileRelation:
    """A HadoopFsRelation with its non-empty files. The plan node may also output ``_metadata``, which is in neither schema.

    files_pruned: the number of files that conditions on partition columns exclude; ``files`` does not have them. roots:
    Hadoop's paths, with a scheme and not escaped (``file:/data/x y.parquet``). data_schema: the columns of the files that
    have a type in the engine. unread: the other columns, with the reason why they have no type. columns: the JSON of Spark's
    schema for each column of the files, including its metadata. jvm_zone: the time zone of Spark's JVM, which some formats
    depend on. defaults: the default values, as plain values, of columns that some files do not have, unless they are NULL.
    from_log: whether a table format's log lists the files; such files never change. table_columns: the mapping of column
    names, if the table's columns have other names in its files; all other fields use the files' names. bucket_spec: None if
    the table is not bucketed.
    """

    format: str
    roots: tuple[str, ...]
    files: tuple[ListedFile, ...]
    data_schema: pa.Schema
    partition_schema: pa.Schema
    options: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    jvm_zone: str = "UTC"
    from_log: bool = False
    table_columns: TableColumns | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    bucket_spec: BucketSpec | None = None
    files_pruned: int = 0

    @property
    def stored_names(self) -> Set[str]:
        """The names in the files of all columns, including partition columns."""
        return {*self.data_schema.names, *self.partition_schema.names, *self.unread}

    @property
    def table_names(self) -> Set[str]:
        """The table's names of all columns."""
        if self.table_columns is None:
            return self.stored_names
        table_names = {stored: name for name, stored in self.table_columns.stored.items()}
        return {table_names.get(name, name) for name in self.stored_names}

    def stored_name(self, column: str) -> str:
        """Return the name in the files of a table's column."""
        return column if self.table_columns is None else self.table_columns.stored.get(column, column)
