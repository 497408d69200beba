"""Builds the source of an Iceberg scan, which reads each data file with the column names that the file has.

Iceberg resolves columns by field id, so a file that was written before a rename has other names. Files with the same names
(``_Layout``) are read as one ``ParquetSource``. Views on top add row positions, remove deleted rows, and rename the columns:

    ConcatenatedSource                  all files
      RenamedColumns                    per layout: from the file's names to the table's
        LiveRows                        position deletes and deletion vectors
          NumberedRows                  the metadata column _pos
            ParquetSource               the files of one layout

``EqualityDeletesView`` is the outermost source if there are equality deletes. See "Column Projection" in Iceberg's
specification.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.sources.base import DataFile, Source
from kquery_spark.sources.deletes.deletion_vectors import DeletionVector
from kquery_spark.sources.deletes.equality_deletes import EqualityDeletesView
from kquery_spark.sources.deletes.live_rows import DeletedRows, LiveRows
from kquery_spark.sources.deletes.position_deletes import PositionDeletes
from kquery_spark.sources.files import modified_ms, stamp_of
from kquery_spark.sources.iceberg.equality_deletes import equality_deletes, further_keys
from kquery_spark.sources.iceberg.features import HYBRID_CALENDAR, NESTED_DEFAULT, NO_FIELD_IDS
from kquery_spark.sources.iceberg.name_mapping import NameMapping, mapped_fields, read_name_mapping
from kquery_spark.sources.iceberg.tasks import POSITION_ID, DeleteFile, Field, PlannedFile
from kquery_spark.sources.memory import local_source
from kquery_spark.sources.parquet.calendar import CORRECTED_ALL
from kquery_spark.sources.parquet.field_ids import has_id, id_of, parts_of
from kquery_spark.sources.parquet.file import OpenFile
from kquery_spark.sources.parquet.format import PARQUET
from kquery_spark.sources.parquet.open_files import open_files
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.sources.partitions import plain_value
from kquery_spark.sources.views.concatenated import ConcatenatedSource
from kquery_spark.sources.views.numbered_rows import NumberedRows
from kquery_spark.sources.views.renamed import RenamedColumns

FILE_FORMAT = PARQUET
"""The format of the data files that the engine reads."""
_VECTOR_FRAME_BYTES = 8  # the length before a deletion vector and the checksum after it


@dataclass(frozen=True)
class _Layout:
    """How the table's columns are stored in a group of data files.

    schema: the columns in the table's order, with the files' names. constants: the names of the columns that are not stored
    in the files and have one value per file. position: the name of an additional column with the position of each row in
    its file; None if the query does not read it.
    """

    schema: pa.Schema
    constants: tuple[str, ...]
    position: str | None = None


def iceberg_source(
    schema: pa.Schema,
    fields: Sequence[Field],
    files: Sequence[PlannedFile],
    path_of: Callable[[str], str],
    name_mapping: Callable[[], str | None] = lambda: None,
) -> Source:
    """Build the source of an Iceberg scan. schema, fields: the columns to read, and Iceberg's description of each.

    path_of: translates Iceberg's path of a file to the engine's; raises Unsupported for filesystems that the engine does not
    read. name_mapping: returns the table's name mapping in JSON, or None; called only for data files without field ids.
    """
    if not files:
        return local_source(schema.empty_table())
    deletes = equality_deletes(files)
    keys = further_keys(deletes, fields, schema.names)
    columns = [*zip(schema, fields, strict=True), *keys]
    columns.sort(key=lambda each: each[1].id == POSITION_ID)  # NumberedRows adds it last
    read_schema = pa.schema([column for column, _ in columns])
    read_fields = [key for _, key in columns]
    source, in_order = _live_source(
        read_schema, read_fields, files, path_of, cache(lambda: _parsed(name_mapping()))
    )
    if not deletes:
        return source
    names = dict(zip((field.id for field in read_fields), read_schema.names, strict=True))
    values = tuple(
        _deleted_values(delete, pa.schema([read_schema.field(names[key.id]) for key in delete.keys]), path_of)
        for delete in deletes
    )
    numbers = {delete.path: number for number, delete in enumerate(deletes)}
    deleted = tuple(tuple(numbers[delete.path] for delete in file.equality_deletes) for file in in_order)
    return EqualityDeletesView(source, schema, values, deleted)


def _deleted_values(delete: DeleteFile, schema: pa.Schema, path_of: Callable[[str], str]) -> Source:
    """The source of an equality delete file."""
    columns = pa.schema([column.with_nullable(True) for column in schema])
    source, _ = _live_source(columns, delete.keys, [PlannedFile(delete.path, delete.size)], path_of)
    return source


def _live_source(
    schema: pa.Schema,
    fields: Sequence[Field],
    files: Sequence[PlannedFile],
    path_of: Callable[[str], str],
    mapping: Callable[[], NameMapping | None] = lambda: None,
) -> tuple[Source, list[PlannedFile]]:
    """Return a source of all rows that are not deleted by position, and the files in the order that the source has."""
    plain = [data_file(file, path_of) for file in files]
    by_layout: dict[_Layout, list[tuple[DataFile, PlannedFile]]] = defaultdict(list)
    for opened, file in zip(open_files(plain), files, strict=True):
        in_file = _fields_of(opened, file, mapping)
        layout, values = _laid_out(schema, fields, file, in_file)
        _check_calendar(opened, layout, file)
        by_layout[layout].append((replace(opened.file, partition=values), file))
    sources = tuple(_source(schema, layout, some, path_of) for layout, some in by_layout.items())
    in_order = [file for some in by_layout.values() for _, file in some]
    if len(sources) == 1:
        return sources[0], in_order
    return ConcatenatedSource(sources, tuple(map(len, by_layout.values()))), in_order


def _source(
    schema: pa.Schema,
    layout: _Layout,
    files: Sequence[tuple[DataFile, PlannedFile]],
    path_of: Callable[[str], str],
) -> Source:
    """Build the source of the files with one layout."""
    source: Source = ParquetSource(tuple(opened for opened, _ in files), layout.schema, layout.constants)
    if layout.position is not None:
        source = NumberedRows(source, layout.position)
    deleted = tuple(_deleted(file, path_of) for _, file in files)
    if any(deleted):
        source = LiveRows(source, deleted)
    return source if source.schema.equals(schema) else RenamedColumns(source, schema)


def data_file(file: PlannedFile, path_of: Callable[[str], str]) -> DataFile:
    """Convert a planned file to a DataFile. path_of: as in ``iceberg_source``."""
    path = path_of(file.path)
    return DataFile(path, file.size, modified_ms(path), stamp=stamp_of(path))


def _parsed(name_mapping: str | None) -> NameMapping | None:
    return None if name_mapping is None else read_name_mapping(name_mapping)


def _fields_of(
    opened: OpenFile, file: PlannedFile, mapping: Callable[[], NameMapping | None]
) -> list[pa.Field]:
    """A file's columns with field ids: the file's own ids or, if it has none at all, those of the table's name mapping."""
    in_file = list(opened.schema)
    if any(map(has_id, in_file)):
        return in_file
    names = mapping()
    if names is None:
        raise NO_FIELD_IDS.declined(file=file.path)
    return mapped_fields(in_file, names)


def _check_calendar(opened: OpenFile, layout: _Layout, file: PlannedFile) -> None:
    """Raise Unsupported for dates or times of the hybrid calendar, which Spark's reader rebases but Iceberg's does not."""
    for column in layout.schema.names:
        if opened.rebase(column, CORRECTED_ALL) is not None:
            raise HYBRID_CALENDAR.declined(column=column, file=file.path)


def _laid_out(
    schema: pa.Schema, fields: Sequence[Field], file: PlannedFile, in_file: Sequence[pa.Field]
) -> tuple[_Layout, tuple[Any, ...]]:
    """Determine a file's layout, and the values of the columns that are not stored in the file."""
    columns: list[pa.Field] = []
    constants: dict[str, Any] = {}
    position: str | None = None
    for column, field in zip(schema, fields, strict=True):
        if field.id == POSITION_ID:
            position = _unused_name(field, in_file)
            continue
        stored = None if field.id in file.constants else _stored(column, field, in_file)
        if stored is None:
            stored = column.with_name(_unused_name(field, in_file))
            given = file.constants.get(field.id, field.default)
            if given is None and not column.nullable:
                raise Unsupported(f"{file.path} lacks {field.name}, although the column cannot be NULL")
            constants[stored.name] = _constant(given, field, column.type)
        columns.append(stored)
    return _Layout(pa.schema(columns), tuple(constants), position), tuple(constants.values())


def _unused_name(field: Field, in_file: Iterable[pa.Field]) -> str:
    """A name for a missing field that does not occur in the file."""
    names = {column.name for column in in_file}
    name = f"field {field.id}"
    while name in names:
        name += "_"
    return name


def _stored(column: pa.Field, field: Field, in_file: Sequence[pa.Field]) -> pa.Field | None:
    """The column with the names that it has in the file, found by field id; None if the file lacks it."""
    matches = [candidate for candidate in in_file if id_of(candidate) == field.id]
    if len(matches) > 1:
        raise Unsupported(f"a file has two fields with the id {field.id}")
    if not matches:
        return None
    return pa.field(matches[0].name, _stored_type(column.type, field, matches[0].type), column.nullable)


def _stored_type(dtype: pa.DataType, field: Field, in_file: pa.DataType) -> pa.DataType:
    """The table's type of a column, with the struct field names of the file."""
    if field.kind == "struct" and pa.types.is_struct(in_file):
        return pa.struct(_stored_fields(dtype, field, in_file))
    parts = list(parts_of(in_file))
    if field.kind == "list" and len(parts) == 1:
        (element,) = field.nested
        return pa.list_(dtype.value_field.with_type(_stored_type(dtype.value_type, element, parts[0].type)))
    if field.kind == "map" and len(parts) == 2:
        key, value = field.nested
        return pa.map_(
            dtype.key_field.with_type(_stored_type(dtype.key_type, key, parts[0].type)),
            dtype.item_field.with_type(_stored_type(dtype.item_type, value, parts[1].type)),
        )
    return dtype


def _stored_fields(dtype: pa.DataType, field: Field, in_file: pa.DataType) -> list[pa.Field]:
    children, missing = [], 0
    for child, nested in zip(dtype, field.nested, strict=True):
        stored = _stored(child, nested, list(in_file))
        if stored is None:
            if nested.default is not None:
                raise NESTED_DEFAULT.declined(field=nested.name)
            if not child.nullable:
                raise Unsupported(f"a file lacks {nested.name}, although the field cannot be NULL")
            stored = child.with_name(_unused_name(nested, in_file))
            missing += 1
        children.append(stored)
    if missing == len(children):
        raise Unsupported(f"a file without any field of {field.name} is not supported")
    return children


def _constant(value: Any, field: Field, dtype: pa.DataType) -> Any:
    """Convert a JSON value of Iceberg to the plain form that sources use for partition values."""
    if value is None:
        return None
    if field.nested:
        raise Unsupported(f"the default of {field.name} is not supported")
    return plain_value(_from_json(value, dtype))


def _from_json(value: Any, dtype: pa.DataType) -> pa.Scalar:
    """Parse a JSON value of Iceberg (appendix D of its specification, "Single-value serialization")."""
    if pa.types.is_floating(dtype) and isinstance(value, str):
        raise Unsupported(f"the constant {value} of a column of type {dtype} is not supported")
    if pa.types.is_decimal(dtype):
        return pa.scalar(Decimal(value), dtype)
    if pa.types.is_temporal(dtype):
        if isinstance(value, int):  # days or microseconds, as in manifests
            return pa.scalar(value, pa.int32() if pa.types.is_date(dtype) else pa.int64()).cast(dtype)
        return pa.scalar(value, pa.string()).cast(dtype)
    if pa.types.is_binary(dtype):
        return pa.scalar(bytes.fromhex(value), dtype)
    return pa.scalar(value, dtype)


def _deleted(file: PlannedFile, path_of: Callable[[str], str]) -> DeletedRows | None:
    """The position deletes or the deletion vector of a file; None if it has neither."""
    if not file.deletes:
        return None
    vectors = [delete for delete in file.deletes if delete.offset is not None]
    if not vectors:
        return PositionDeletes(file.path, tuple(path_of(delete.path) for delete in file.deletes))
    if len(file.deletes) > 1:
        raise Unsupported(f"{file.path} has a deletion vector and position deletes, which is not supported")
    return _vector(vectors[0], path_of)


def _vector(delete: DeleteFile, path_of: Callable[[str], str]) -> DeletionVector:
    assert delete.offset is not None and delete.nbytes is not None
    return DeletionVector(
        delete.rows, delete.nbytes - _VECTOR_FRAME_BYTES, path_of(delete.path), delete.offset
    )
