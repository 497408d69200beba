"""A table of files as Spark describes and lists it, before the engine has looked at any of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class ListedFile:
    """One file of a relation; ``partition`` has a value for each field of the partition schema."""

    path: str
    size: int
    modified_ms: int
    partition: tuple[pa.Scalar, ...] = ()


@dataclass(frozen=True)
class FileRelation:
    """A HadoopFsRelation: all its non-empty files, before partition pruning.

    Paths are Hadoop's, with a scheme and not escaped (``file:/data/x y.parquet``). ``output`` of the plan
    node may have columns of neither schema (``_metadata``), which come from the file itself. ``unread`` says
    of columns that the engine has no type for why not; ``data_schema`` is without them. ``columns`` has the JSON of Spark's
    schema for each column of the files, with its metadata. ``jvm_zone`` is the time zone of Spark's JVM, for a format
    whose files are read by it.
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
