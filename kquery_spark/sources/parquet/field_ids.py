"""Field ids of Parquet columns: checks that resolving columns by id and by name gives the same columns.

The engine resolves columns by name. Spark resolves them by id if the table's schema has ids and a setting is on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.parquet.open_files import open_file

_SPARK_KEY = "parquet.field.id"
_ARROW_KEY = b"PARQUET:field_id"


@dataclass(frozen=True)
class FieldIds:
    """The field id of a column in the table's schema (None: no id), and the ids of its nested fields by name."""

    own: int | None = None
    nested: Mapping[str, FieldIds] = field(default_factory=dict)


def field_ids(column: Mapping[str, Any]) -> FieldIds | None:
    """The ids of a column. column: its JSON in a Spark schema. None if neither it nor a nested field has an id."""
    own = (column.get("metadata") or {}).get(_SPARK_KEY)
    nested = _nested_ids(column["type"])
    return None if own is None and not nested else FieldIds(own, nested)


def _nested_ids(spark: Any) -> dict[str, FieldIds]:
    """The ids of the fields of a nested type, by name. spark: the type, as in the JSON of a Spark schema."""
    if not isinstance(spark, dict):
        return {}
    if spark["type"] == "struct":
        nested = {child["name"]: field_ids(child) for child in spark["fields"]}
    else:  # array elements, map keys and map values have no ids, but fields inside of them may
        types = {"element": "elementType", "key": "keyType", "value": "valueType"}
        nested = {part: field_ids({"type": spark[key]}) for part, key in types.items() if key in spark}
    return {name: ids for name, ids in nested.items() if ids is not None}


def check_field_ids(
    files: Sequence[DataFile], ids_by_column: Mapping[str, FieldIds], by_id: bool, ignore_missing: bool
) -> None:
    """Raise Unsupported if Spark would read other columns than the engine, or would refuse a file.

    ids_by_column: the ids of those columns to read that have any. by_id: whether Spark resolves these by id. ignore_missing:
    whether Spark also reads files without any id. Otherwise it refuses such files, even if it resolves columns by name.
    """
    if not ids_by_column:
        return
    for file in files:
        schema = open_file(file).schema
        if not ignore_missing and not any(map(has_id, schema)):
            raise Unsupported(
                f"{file.path} has no field ids, unlike the table's columns, so Spark refuses to read it"
            )
        for name, ids in ids_by_column.items() if by_id else ():
            _check_same(list(schema), name, ids, file.path)


def _check_same(fields: list[pa.Field], name: str, ids: FieldIds, path: str) -> None:
    """Raise Unsupported unless the name and the id resolve to the same field of the file, or both to none."""
    named = _with_name(fields, name)
    matches = named if ids.own is None else _with_id(fields, ids.own)
    if [f.name for f in matches] != [f.name for f in named] or len(matches) > 1:
        raise Unsupported(f"the field id of {name} is that of another column, or of none, in {path}")
    if matches:
        parts = list(parts_of(matches[0].type))
        for inner, below in ids.nested.items():
            _check_same(parts, inner, below, path)


def _with_name(fields: list[pa.Field], name: str) -> list[pa.Field]:
    return [f for f in fields if f.name.lower() == name.lower()]


def _with_id(fields: list[pa.Field], field_id: int) -> list[pa.Field]:
    return [f for f in fields if id_of(f) == field_id]


def parts_of(dtype: pa.DataType) -> Iterator[pa.Field]:
    """The direct children of a nested type, with the names that FieldIds uses: field names, element, key, and value."""
    if pa.types.is_struct(dtype):
        yield from dtype
    elif pa.types.is_map(dtype):
        yield dtype.key_field.with_name("key")
        yield dtype.item_field.with_name("value")
    elif pa.types.is_nested(dtype):
        yield dtype.value_field.with_name("element")


def id_of(column: pa.Field) -> int | None:
    """The field id of a file's field, from its Arrow metadata; None without one."""
    value = (column.metadata or {}).get(_ARROW_KEY)
    return None if value is None else int(value)


def with_id(column: pa.Field, field_id: int | None) -> pa.Field:
    """The field with a field id in its metadata, in the form that Arrow reads from a file."""
    return column if field_id is None else column.with_metadata({_ARROW_KEY: str(field_id)})


def has_id(column: pa.Field) -> bool:
    """True if a field of a file or one of its nested fields has an id."""
    return id_of(column) is not None or any(map(has_id, parts_of(column.type)))
