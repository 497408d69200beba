"""Converts Arrow types to the JSON of Spark's data types; ``types.spark_json`` reads such JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.types import names as t
from kquery_spark.types.spark_json import ATOMIC_TYPES, DAY_TIME_NAME, TIME_NAME

_NAMES = {
    **{arrow: name for name, arrow in ATOMIC_TYPES.items()},
    **dict.fromkeys((pa.large_string(), pa.string_view()), "string"),
    **dict.fromkeys((pa.large_binary(), pa.binary_view()), "binary"),
    t.DAY_TIME: DAY_TIME_NAME,
    t.YEAR_MONTH: "interval year to month",
    t.TIME: TIME_NAME,
}


def spark_type(arrow: pa.DataType) -> Any:
    """The ``DataType.jsonValue`` for an Arrow type of the engine."""
    name = _NAMES.get(arrow)
    if name is not None:
        return name
    if pa.types.is_timestamp(arrow) and arrow.unit == "us":
        return "timestamp"
    if pa.types.is_decimal128(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if pa.types.is_dictionary(arrow):
        return spark_type(arrow.value_type)
    if pa.types.is_nested(arrow):
        return _nested_spark_type(arrow)
    raise _no_spark_type(arrow)


def _nested_spark_type(arrow: pa.DataType) -> dict[str, Any]:
    if pa.types.is_struct(arrow):
        return spark_schema(arrow)
    if pa.types.is_map(arrow):
        return {
            "type": "map",
            "keyType": spark_type(arrow.key_type),
            "valueType": spark_type(arrow.item_type),
            "valueContainsNull": arrow.item_field.nullable,
        }
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return {
            "type": "array",
            "elementType": spark_type(arrow.value_type),
            "containsNull": arrow.value_field.nullable,
        }
    raise _no_spark_type(arrow)


def spark_schema(fields: Iterable[pa.Field]) -> dict[str, Any]:
    """The JSON of a ``StructType`` with these Arrow fields."""
    return {"type": "struct", "fields": [_spark_field(field) for field in fields]}


def _no_spark_type(arrow: pa.DataType) -> Unsupported:
    return Unsupported(f"Spark has no type for Arrow's {arrow}")


def _spark_field(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": spark_type(field.type), "nullable": field.nullable, "metadata": {}}
