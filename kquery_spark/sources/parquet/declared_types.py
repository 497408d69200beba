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
from kquery_spark.types.decimals import MAX_PRECISION
from kquery_spark.types.spark_json import ATOMIC, COLLATIONS_KEY, DECIMAL, fields_within, padded_type

_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_DEFAULT_KEY = "EXISTS_DEFAULT"
_DAY_TIME = "interval day to second"
_NAMES = {**ATOMIC, "null": t.NULL, "decimal": t.decimal(10, 0), "time(6)": t.TIME}


def declared_fields(footer: Mapping[bytes, bytes]) -> list[Mapping[str, Any]] | None:
    """The columns in the schema that Spark wrote: the JSON of each ``StructField``; None for other files.

    footer: the key-value pairs. A malformed schema is ignored, as by ``ParquetFileFormat``. Raises Unsupported for a schema
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


def _is_type(spark: Any) -> bool:
    """Return whether ``DataType.parseDataType`` accepts the form of a type in JSON; it declines objects with other keys.

    The names of types are not checked here, because the engine declines a column of an unknown type.
    """
    match spark:
        case str():
            return True
        case {"type": "udt", "pyClass": _, "sqlType": _}:
            return len(spark) == 4 and ("class" in spark or "serializedClass" in spark)
        case {"type": "struct", "fields": list(fields)} if len(spark) == 2:
            return all(map(_is_field, fields))
        case {"type": "array", "elementType": element, "containsNull": bool()} if len(spark) == 3:
            return _is_type(element)
        case {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": bool()} if (
            len(spark) == 4
        ):
            return _is_type(key) and _is_type(value)
    return False


def _is_field(field: Any) -> bool:
    """Return whether ``DataType.parseStructField`` accepts a field; older releases write no ``nullable`` or ``metadata``."""
    match field:
        case {"name": str(), "type": spark, "nullable": bool(), "metadata": dict()} if len(field) == 4:
            return _is_type(spark)
        case {"name": str(), "type": spark, "nullable": bool()} if len(field) == 3:
            return _is_type(spark)
        case {"name": str(), "type": spark} if len(field) == 2:
            return _is_type(spark)
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
    return t.DAY_TIME if field["type"] == _DAY_TIME else _arrow_type(field["type"], column, tz)


def _arrow_type(spark: Any, column: str, tz: str) -> pa.DataType:
    """Return the engine's type of a type in JSON. column: the start of a message, for a type that is not supported."""
    match spark:
        case {"fields": fields}:
            return pa.struct([pa.field(f["name"], _arrow_type(f["type"], column, tz)) for f in fields])
        case {"elementType": element}:
            return pa.list_(_arrow_type(element, column, tz))
        case {"keyType": key, "valueType": value}:
            return pa.map_(_arrow_type(key, column, tz), _arrow_type(value, column, tz))
        case "timestamp" | "timestamp_ltz":
            return t.timestamp(tz)
    name = spark if isinstance(spark, str) else str(spark["type"])
    decimal = DECIMAL.fullmatch(name)
    if decimal and 0 <= int(decimal[2]) <= int(decimal[1]) <= MAX_PRECISION:
        return t.decimal(int(decimal[1]), int(decimal[2]))
    if name not in _NAMES:
        raise Unsupported(f"{column} has the type {name}, which is not supported")
    return _NAMES[name]


def columns_with_defaults(declared: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns for which Spark reads a default value instead of NULL from the files that lack them."""
    return [field["name"] for field in declared if _DEFAULT_KEY in (field.get("metadata") or {})]
