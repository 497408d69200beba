"""Iceberg tables without Spark: the ``pyiceberg`` package plans the scan, and the engine's own sources read the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from kquery_spark.context.table_metadata import as_source_errors
from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.sources.base import Source
from kquery_spark.sources.iceberg.name_mapping import PROPERTY
from kquery_spark.sources.iceberg.primitive_types import primitive_type
from kquery_spark.sources.iceberg.source import iceberg_source
from kquery_spark.sources.iceberg.tasks import DeleteFile, Field, PlannedFile, read_schema

_INSTALL = "Iceberg tables are read by the package pyiceberg: pip install 'kquery-spark[iceberg]'"
# Storage options by name, and pyiceberg's S3 setting for each.
_PROPERTIES = {
    "aws_access_key_id": "s3.access-key-id",
    "aws_secret_access_key": "s3.secret-access-key",
    "aws_session_token": "s3.session-token",
    "aws_region": "s3.region",
    "aws_endpoint_url": "s3.endpoint",
}


def iceberg_table_source(
    table: Any, snapshot: int | None, time_zone: str, options: Mapping[str, Any] | None
) -> Source:
    """Return a source of the rows of a snapshot of a table (default: the latest); raises SourceError if it cannot be read.

    table: a ``pyiceberg.table.Table``, or the path of a table's metadata file. options: the storage options of
    ``register_parquet``.
    """
    opened = _opened(table, options) if isinstance(table, str) else table
    _decode_within_bounds()
    with as_source_errors(f"the Iceberg table {_name(opened)} cannot be read"):
        scan = opened.scan(snapshot_id=snapshot)
        fields = read_schema(scan.projection().model_dump_json())
        schema = pa.schema([_arrow_field(field, time_zone) for field in fields])
        files = [_planned(task, opened.specs()) for task in scan.plan_files()]
        source = iceberg_source(schema, fields, files, _local, partial(opened.properties.get, PROPERTY))
        source.check_files(schema.names)
    return source


def _decode_within_bounds() -> None:
    """Make pyiceberg decode manifests with its decoder in Python.

    Its compiled decoder does not check lengths: for a damaged manifest, it reads beyond its buffer and ends the process.
    """
    from pyiceberg.avro import file
    from pyiceberg.avro.decoder import StreamingBinaryDecoder

    vars(file)["new_decoder"] = StreamingBinaryDecoder


def _name(table: Any) -> str:
    """Return the table's name in its catalog, or the path of its metadata if it is in no catalog."""
    return ".".join(map(str, table.name()))


def _opened(path: str, options: Mapping[str, Any] | None) -> Any:
    try:
        from pyiceberg.table import StaticTable
    except ImportError:
        raise SourceError(_INSTALL) from None
    properties = {_PROPERTIES.get(name.lower(), name): str(value) for name, value in (options or {}).items()}
    with as_source_errors(f"cannot open the Iceberg table {path}"):
        return StaticTable.from_metadata(path, properties)


def _local(path: str) -> str:
    return path.removeprefix("file://") if path.startswith("file:///") else path.removeprefix("file:")


def _arrow_field(field: Field, time_zone: str) -> pa.Field:
    return pa.field(field.name, _arrow_type(field, time_zone), not field.required)


def _arrow_type(field: Field, time_zone: str) -> pa.DataType:
    nested = [_arrow_field(part, time_zone) for part in field.nested]
    if field.kind == "struct":
        return pa.struct(nested)
    if field.kind == "list":
        return pa.list_(nested[0])
    if field.kind == "map":
        return pa.map_(*nested)
    dtype = primitive_type(field.kind, time_zone)
    if dtype is None:
        raise Unsupported(f"{field.name} is of the type {field.kind}")
    return dtype


def _planned(task: Any, specs: Mapping[int, Any]) -> PlannedFile:
    file = task.file
    if file.file_format.value.lower() != "parquet" or file.key_metadata is not None:
        raise Unsupported(f"{file.file_path} is not a plain Parquet file")
    deletes = tuple(_delete(delete) for delete in task.delete_files)
    constants = dict(_constants(specs[file.spec_id].fields, file.partition))
    return PlannedFile(file.file_path, file.file_size_in_bytes, constants, deletes)


def _constants(fields: Sequence[Any], partition: Any) -> Iterator[tuple[int, Any]]:
    """Yield the field id and the value of each identity partition column, whose values are not in the file."""
    from pyiceberg.transforms import IdentityTransform

    for position, field in enumerate(fields):
        if isinstance(field.transform, IdentityTransform):
            yield field.source_id, partition[position]


def _delete(delete: Any) -> DeleteFile:
    if delete.content.name != "POSITION_DELETES" or delete.file_format.value.lower() != "parquet":
        raise Unsupported(
            f"{delete.file_path} is not a Parquet file of position deletes, which is not supported"
        )
    return DeleteFile(delete.file_path, delete.file_size_in_bytes, delete.record_count)
