"""The schema that Spark declares in the footer of its Parquet files.

Spark takes the names, order, types and metadata of the columns of such a file from this schema, which is the JSON of a
``StructType``, and not from the Parquet schema (``ParquetFileFormat.readSchemaFromFooter``). The two differ for types that
Parquet does not have, such as intervals and collated strings, and if another program changed the columns of a file and
copied the declaration, as pyarrow does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.types import names as t
from kquery_spark.types.spark_json import (
    COLLATIONS_KEY,
    DAY_TIME_NAME,
    arrow_type,
    fields_within,
    is_parquet_type,
    leaf_names,
    padded_type,
)

_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_DEFAULT_KEY = "EXISTS_DEFAULT"


def declared_fields(footer: Mapping[bytes, bytes]) -> list[Mapping[str, Any]] | None:
    """Return the JSON of each ``StructField`` in the schema that Spark wrote; None for other files.

    footer: the key-value pairs. Like ``ParquetFileFormat``, it ignores a malformed schema. Raises Unsupported for a schema
    in the form of Spark 1.1.
    """
    text = footer.get(_SCHEMA_KEY, b"").decode(errors="replace").strip()
    if text.startswith("StructType("):
        raise Unsupported("its footer has a schema in the form of Spark 1.1")
    try:
        schema, _ = json.JSONDecoder().raw_decode(text)  # Spark ignores what follows the schema, too
        is_struct = isinstance(schema, dict) and schema.get("type") == "struct" and _is_type(schema)
    except (ValueError, RecursionError):
        return None
    return schema["fields"] if is_struct else None


def _is_type(json_type: Any) -> bool:
    """Return whether ``DataType.parseDataType`` accepts the form of a type in JSON; it rejects objects with other keys.

    The names of types are not checked here, because the engine declines a column of an unknown type.
    """
    match json_type:
        case str():
            return True
        case {"type": "udt", "pyClass": _, "sqlType": _}:
            return len(json_type) == 4 and ("class" in json_type or "serializedClass" in json_type)
        case {"type": "struct", "fields": list(fields)} if len(json_type) == 2:
            return all(map(_is_field, fields))
        case {"type": "array", "elementType": element, "containsNull": bool()} if len(json_type) == 3:
            return _is_type(element)
        case {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": bool()} if (
            len(json_type) == 4
        ):
            return _is_type(key) and _is_type(value)
    return False


def _is_field(field: Any) -> bool:
    """Return whether ``DataType.parseStructField`` accepts a field; older releases write no ``nullable`` or ``metadata``."""
    match field:
        case {"name": str(), "type": json_type, "nullable": bool(), "metadata": dict()} if len(field) == 4:
            return _is_type(json_type)
        case {"name": str(), "type": json_type, "nullable": bool()} if len(field) == 3:
            return _is_type(json_type)
        case {"name": str(), "type": json_type} if len(field) == 2:
            return _is_type(json_type)
    return False


def check_names(declared: Sequence[Mapping[str, Any]], stored: Sequence[str]) -> None:
    """Raise Unsupported if a file does not store exactly the columns that Spark declares, in this order."""
    names = [field["name"] for field in declared]
    if names != list(stored):
        name = next(a or b for a, b in zip_longest(names, stored) if a != b)
        raise Unsupported(f"its columns are not those of Spark's schema in the footer, beginning with {name}")


def declared_type(field: Mapping[str, Any], tz: str) -> pa.DataType:
    """The engine's type of a column by its declaration.

    Raises Unsupported for types that the engine does not support, and for strings with a collation or of a fixed length.
    """
    column = f"the Parquet column {field['name']}"
    if any((part.get("metadata") or {}).get(COLLATIONS_KEY) for part in fields_within(field)):
        raise Unsupported(f"{column} has a collation, which the engine does not compare by")
    if (raw := padded_type(field)) is not None:
        raise Unsupported(f"{column} has the type {raw}, whose values Spark pads")
    # Parquet has no intervals. Only whole columns of them are read from the integers that Spark stores.
    other = next((name for name in leaf_names(field["type"]) if not is_parquet_type(name)), None)
    if other is not None and field["type"] != DAY_TIME_NAME:
        raise Unsupported(f"{column} has the type {other}, which is not supported")
    return t.nullable_within(arrow_type(field["type"], tz))


def columns_with_defaults(declared: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns for which Spark reads a default value instead of NULL from the files that lack them."""
    return [field["name"] for field in declared if _DEFAULT_KEY in (field.get("metadata") or {})]
