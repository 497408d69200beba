"""Delta tables without Spark: the ``deltalake`` package reads the metadata, and the engine's own sources read the files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from kquery_spark.context.table_metadata import as_source_errors
from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.kernels.zones import fixed_offset
from kquery_spark.sources.base import DataFile, Source
from kquery_spark.sources.deletes.deletion_vectors import DeletedPositions
from kquery_spark.sources.deletes.live_rows import LiveRows
from kquery_spark.sources.delta.column_mapping import MODES, UNMAPPED, stored_column
from kquery_spark.sources.file_format import SessionForFiles
from kquery_spark.sources.files import literal_local_path, local_path, modified_ms, stamp_of
from kquery_spark.sources.memory import memory_source
from kquery_spark.sources.parquet.field_ids import check_field_ids, field_ids
from kquery_spark.sources.parquet.format import follow_session
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.sources.partitions import plain_value
from kquery_spark.sources.views.renamed import RenamedColumns
from kquery_spark.types.spark_json import arrow_schema, padded_type

# Supported reader features of a table. deltalake refuses to open tables with features that it does not know.
_FEATURES = frozenset(
    {
        "deletionVectors",
        "columnMapping",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "typeWidening",
    }
)
_INSTALL = "Delta tables are read by the package deltalake: pip install 'kquery-spark[delta]'"


def delta_source(
    path: str,
    version: int | None,
    time_zone: str,
    options: Mapping[str, Any] | None,
    session: SessionForFiles | None,
) -> Source:
    """Return a source of the rows of a version of a table (default: the latest); raises SourceError if it cannot be read.

    options: the storage options of ``register_parquet``, which deltalake also uses. session: the settings that the
    reader of the files follows, because Delta reads them with Spark's Parquet reader; None without Spark.
    """
    local = literal_local_path(path)
    if local is not None:
        path = os.path.abspath(local)
        if "%" in path or "\\" in path:
            raise SourceError(
                f"{path} contains % or a backslash, which the package deltalake does not support"
            )
    table = _opened(path, version, options)
    with as_source_errors(f"the Delta table {path} cannot be read"):
        return _source_of(path, table, time_zone, session)


def _source_of(path: str, table: Any, time_zone: str, session: SessionForFiles | None) -> Source:
    """Return a source of the rows of an opened table.

    The Parquet source reads the columns by their names in the files. ``LiveRows`` then removes deleted rows, and
    ``RenamedColumns`` restores the table's column names if the table has a column mapping.
    """
    features = set(table.protocol().reader_features or ())
    if not features <= _FEATURES:
        raise SourceError(
            f"{path} requires the reader features {', '.join(sorted(features - _FEATURES))}, which are not supported"
        )
    columns = json.loads(table.schema().to_json())["fields"]
    metadata = table.metadata()
    mode = metadata.configuration.get("delta.columnMapping.mode") or UNMAPPED
    try:
        schema = arrow_schema({"fields": columns}, time_zone)
        _check_no_char_columns(columns)
        if mode not in MODES:
            raise Unsupported(f"its column mapping is {mode}")
        stored = columns if mode == UNMAPPED else [stored_column(c, c, mode) for c in columns]
        stored_schema = arrow_schema({"fields": stored}, time_zone)
    except Unsupported as error:
        raise SourceError(f"{path} cannot be read: {error.reason}") from None
    partition_fields = [schema.field(name) for name in metadata.partition_columns]
    has_timestamps = any(pa.types.is_timestamp(f.type) and f.type.tz for f in partition_fields)
    if has_timestamps and fixed_offset(time_zone) != 0:
        # Spark reads values without an offset in its session's time zone (getPartitionValuesRow in Delta's
        # TahoeFileIndex), but deltalake reads them in UTC, and does not show which values have an offset.
        raise SourceError(
            f"{path} cannot be read: it is partitioned by a timestamp, which is supported only in a context "
            "with the time zone UTC"
        )
    files = _files(path, table, partition_fields)
    if not files:
        return memory_source(schema.empty_table(), time_zone)
    by_name = dict(zip(schema.names, stored_schema.names, strict=True))
    partitions = tuple(by_name[name] for name in metadata.partition_columns)
    ids = {c["name"]: i for c in stored if c["name"] not in partitions and (i := field_ids(c)) is not None}
    try:
        check_field_ids(files, ids, by_id=True, ignore_missing=False)
    except Unsupported as error:
        raise SourceError(f"{path} cannot be read: {error.reason}") from None
    parquet = ParquetSource(files, stored_schema, partitions)
    source: Source = parquet if session is None else follow_session(parquet, session)
    deleted = _deleted(path, table, files) if "deletionVectors" in features else ()
    if any(deleted):
        source = LiveRows(source, deleted)
    source = source if mode == UNMAPPED else RenamedColumns(source, schema)
    source.check_files(schema.names)
    return source


def _check_no_char_columns(columns: Sequence[Mapping[str, Any]]) -> None:
    """Raise Unsupported for CHAR(n) columns: Spark pads their values, and the literals that they are compared with."""
    for column in columns:
        if (raw_type := padded_type(column)) is not None:
            raise Unsupported(f"its column {column['name']} has the type {raw_type}, whose values Spark pads")


def _opened(path: str, version: int | None, options: Mapping[str, Any] | None) -> Any:
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise SourceError(_INSTALL) from None
    strings = None if options is None else {name: str(value) for name, value in options.items()}
    if strings is not None and str(strings.get("aws_endpoint_url", "")).startswith("http://"):
        strings.setdefault("aws_allow_http", "true")
    with as_source_errors(f"cannot open the Delta table {path}"):
        return DeltaTable(path.replace("s3a://", "s3://", 1), version=version, storage_options=strings)


def _files(path: str, table: Any, partitions: Sequence[pa.Field]) -> tuple[DataFile, ...]:
    """Return the table's files with their partition values."""
    actions = pa.table(table.get_add_actions(flatten=True))
    values = [_values(actions[f"partition.{field.name}"], field.type) for field in partitions]
    files = []
    rows = zip(actions["path"].to_pylist(), actions["size_bytes"].to_pylist(), strict=True)
    for row, (name, size) in enumerate(rows):
        file = _file_path(path, name)
        partition = tuple(plain_value(column[row]) for column in values)
        files.append(DataFile(file, size, modified_ms(file), partition, stamp_of(file)))
    return tuple(files)


def _file_path(path: str, name: str) -> str:
    """Return the full path of a file. The log contains escaped paths, most of them relative to the table's directory."""
    name = local_path(name) or name if name.startswith("file:") else unquote(name)
    return name if "://" in name or name.startswith("/") else f"{path.rstrip('/')}/{name}"


def _values(column: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray:
    """Return the values of a partition column in the table's type; deltalake omits the zone of timestamps."""
    if pa.types.is_timestamp(dtype) and pa.types.is_timestamp(column.type) and column.type.tz is None:
        return column.cast(pa.timestamp("us")).cast(pa.int64()).cast(dtype)
    return column.cast(dtype)


def _deleted(path: str, table: Any, files: Sequence[DataFile]) -> tuple[DeletedPositions | None, ...]:
    """Return the deleted positions of each file, None for files without a deletion vector."""
    by_path: dict[str, DeletedPositions] = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for name, live in zip(batch["filepath"].to_pylist(), batch["selection_vector"], strict=True):
            positions = np.flatnonzero(~live.values.to_numpy(zero_copy_only=False)).astype("<i8")
            by_path[_resolved(local_path(name) or unquote(name))] = DeletedPositions(
                len(positions), positions.tobytes()
            )
    deleted = tuple(by_path.pop(_resolved(file.path.replace("s3a://", "s3://", 1)), None) for file in files)
    if by_path:
        raise SourceError(
            f"{path} has deleted rows of {next(iter(by_path))}, which is not a file of the table"
        )
    return deleted


def _resolved(path: str) -> str:
    """Resolve the symbolic links of a local path, as deltalake does; return other paths unchanged."""
    return path if local_path(path) is None else os.path.realpath(path)
