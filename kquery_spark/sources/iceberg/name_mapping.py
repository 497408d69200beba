"""Name mappings: assign field ids, by column name, to data files that other programs wrote without field ids.

Iceberg's procedures ``add_files``, ``migrate`` and ``snapshot`` store a mapping in the table's properties. See "Column
Projection" and appendix C, "Name Mapping Serialization" of Iceberg's specification, and ``ApplyNameMapping`` of its Java
library.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.sources.parquet.field_ids import parts_of, with_id

#: The table property that contains the mapping, in JSON.
PROPERTY = "schema.name-mapping.default"


@dataclass(frozen=True)
class MappedField:
    """The meaning of a name. id: the field id; None if the name has none. nested: the mapping of the nested fields."""

    id: int | None
    nested: NameMapping = field(default_factory=dict)


NameMapping = Mapping[str, MappedField]
"""The fields of a table, or the nested fields of one field, by their names in data files."""


def read_name_mapping(text: str) -> NameMapping:
    """Parse a mapping from names to fields. A field may have several names; raises Unsupported if a name is ambiguous."""
    return _mapped(json.loads(text))


def _mapped(fields: Iterable[Mapping[str, Any]]) -> dict[str, MappedField]:
    mapping: dict[str, MappedField] = {}
    for given in fields:
        mapped = MappedField(given.get("field-id"), _mapped(given.get("fields") or ()))
        for name in given["names"]:
            _check_no_dot(name)
            if name in mapping:
                raise Unsupported(f"{PROPERTY} contains the name {name} twice")
            mapping[name] = mapped
    return mapping


def mapped_fields(fields: Iterable[pa.Field], mapping: NameMapping) -> list[pa.Field]:
    """Add the field ids of a mapping to a file's fields, by exact name; fields that are not in the mapping get no id.

    In a mapping, the parts of lists and maps are always named ``element``, ``key`` and ``value``.
    """
    return [_mapped_field(column, mapping.get(column.name)) for column in fields]


def _check_no_dot(name: str) -> None:
    """Raise Unsupported for a name with a dot, because Iceberg joins the names of a nested field's path with dots."""
    if "." in name:
        raise Unsupported(
            f"the column name {name} is not supported, because Iceberg may read it as a nested field"
        )


def _mapped_field(column: pa.Field, mapped: MappedField | None) -> pa.Field:
    _check_no_dot(column.name)
    if mapped is None:
        return column
    parts = mapped_fields(parts_of(column.type), mapped.nested)
    return with_id(column.with_type(_with_parts(column.type, parts)), mapped.id)


def _with_parts(dtype: pa.DataType, parts: list[pa.Field]) -> pa.DataType:
    """Replace the children of a nested type; a list of any kind becomes a plain list."""
    if pa.types.is_struct(dtype):
        return pa.struct(parts)
    if pa.types.is_map(dtype):
        return pa.map_(*parts)
    return pa.list_(*parts) if parts else dtype
