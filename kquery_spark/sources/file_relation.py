"""A table of files as Spark describes and lists it, before the engine has looked at any of them."""

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

    uri: as Java prints it, in which a path is escaped (``file:///data/x%20y.parquet``). modified_ms: when the file was last
    changed, as its filesystem or the table format's log says. deleted: which of its rows are no rows of the table.
    """

    uri: str
    size: int
    modified_ms: int
    partition: tuple[pa.Scalar, ...] = ()
    deleted: DeletionVector | None = None

    @property
    def path(self) -> str:
        """Hadoop's path: with a scheme, and not escaped (``file:/data/x y.parquet``)."""
        scheme, colon, rest = self.uri.partition(":")
        return f"{scheme}{colon}{unquote(rest.removeprefix('//') if rest.startswith('///') else rest)}"


@dataclass(frozen=True)
class TableColumns:
    """What a table calls the columns that have other names in its files.

    stored: the name in the files by the table's name, of all columns. fields: the table's column by the name in the files,
    of those that the engine has a type for.
    """

    stored: Mapping[str, str]
    fields: Mapping[str, pa.Field]


@dataclass(frozen=True)
class FileRelation:
    """A HadoopFsRelation: all its non-empty files but the ``files_pruned`` that conditions on partition columns leave out.

    ``roots`` are Hadoop's paths, with a scheme and not escaped (``file:/data/x y.parquet``). ``output`` of the plan
    node may have columns of neither schema (``_metadata``), which come from the file itself. ``unread`` says
    of columns that the engine has no type for why not; ``data_schema`` is without them. ``columns`` has the JSON of Spark's
    schema for each column of the files, with its metadata. ``jvm_zone`` is the time zone of Spark's JVM, for a format
    whose files are read by it. ``defaults`` has the plain values of columns in rows of files that lack them, where these are
    not NULL. ``from_log``: a table format's log lists the files, each of which is never changed.
    ``table_columns`` is there for a table whose columns have other names in its files; everything
    else goes by the files' names. ``bucket_spec``: None for a table that is not bucketed.
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
        """The names in the files of all columns, those of directories among them."""
        return {*self.data_schema.names, *self.partition_schema.names, *self.unread}

    @property
    def table_names(self) -> Set[str]:
        """What the table calls them."""
        if self.table_columns is None:
            return self.stored_names
        table_names = {stored: name for name, stored in self.table_columns.stored.items()}
        return {table_names.get(name, name) for name in self.stored_names}

    def stored_name(self, column: str) -> str:
        """The name in the files of a column of the table."""
        return column if self.table_columns is None else self.table_columns.stored.get(column, column)
