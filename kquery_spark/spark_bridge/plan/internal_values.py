"""Reads Catalyst's internal values, such as rows and arrays of literals, from the JVM, one py4j call per element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.plan.literal_values import from_text
from kquery_spark.types.spark_json import is_year_month

_MAX_ELEMENTS = 1000


def few_elements(sequence: Any) -> Sequence[Any]:
    """Return the elements of a Scala sequence; raises Unsupported if there are too many to read one by one."""
    count = sequence.length()
    if count > _MAX_ELEMENTS:
        raise Unsupported(f"a constant of {count} elements is not supported")
    return [sequence.apply(i) for i in range(count)]


def internal_value(value: Any, spark_type: Any) -> Any:
    """Convert a Catalyst value to a Python value. Raises Unsupported for other types, and for values that are too large.

    spark_type: the type in Spark's JSON: a name, or an object for arrays, maps and structs. Maps become lists of pairs.
    """
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(spark_type, dict):
        return _nested_value(value, spark_type)
    if spark_type == "string":
        try:
            return bytes(value.getBytes()).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Unsupported("a string value is not valid UTF-8") from error
    if isinstance(spark_type, str) and spark_type.startswith("decimal"):
        return from_text(value.toString(), pa.decimal128(38, 0))
    raise Unsupported(f"a constant of type {spark_type} cannot be read")


def _nested_value(value: Any, spark_type: dict[str, Any]) -> Any:
    # ``get`` requires Spark's DataType objects; the typed getters of SpecializedGetters do not.
    kind = spark_type["type"]
    if kind == "array":
        return [internal_element(value, i, spark_type["elementType"]) for i in range(_size(value))]
    if kind == "map":
        keys, items = value.keyArray(), value.valueArray()
        return [
            (
                internal_element(keys, i, spark_type["keyType"]),
                internal_element(items, i, spark_type["valueType"]),
            )
            for i in range(_size(keys))
        ]
    if kind == "struct":
        return [internal_element(value, i, field["type"]) for i, field in enumerate(spark_type["fields"])]
    raise Unsupported(f"a constant of type {kind} cannot be read")


def _size(array: Any) -> int:
    count: int = array.numElements()
    if count > _MAX_ELEMENTS:
        raise Unsupported(f"a constant of {count} elements is not supported")
    return count


_GETTERS = {
    "boolean": "getBoolean",
    "byte": "getByte",
    "short": "getShort",
    "integer": "getInt",
    "date": "getInt",
    "long": "getLong",
    "timestamp": "getLong",
    "timestamp_ntz": "getLong",
    "float": "getFloat",
    "double": "getDouble",
    "string": "getUTF8String",
    "binary": "getBinary",
    "array": "getArray",
    "map": "getMap",
}


def internal_element(owner: Any, i: int, spark_type: Any) -> Any:
    """Return an element of a Catalyst row or array as a Python value; None for NULL."""
    if owner.isNullAt(i):
        return None
    kind = spark_type["type"] if isinstance(spark_type, dict) else spark_type
    if kind == "struct":
        return internal_value(owner.getStruct(i, len(spark_type["fields"])), spark_type)
    if kind.startswith("decimal"):
        precision, scale = kind.removeprefix("decimal(").removesuffix(")").split(",")
        return internal_value(owner.getDecimal(i, int(precision), int(scale)), kind)
    if kind.startswith("interval "):
        return owner.getInt(i) if is_year_month(kind) else owner.getLong(i)
    getter = _GETTERS.get(kind)
    if getter is None:
        raise Unsupported(f"a constant of type {kind} cannot be read")
    return internal_value(getattr(owner, getter)(i), spark_type)
