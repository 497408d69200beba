"""Reads Catalyst's internal values, such as rows and arrays of literals, from the JVM, one py4j call per element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.plan.literal_values import from_text
from kquery_spark.spark_bridge.plan.spark_types import is_year_month

_MAX_ELEMENTS = 1000


def few_elements(sequence: Any) -> Sequence[Any]:
    """Return the elements of a Scala sequence; raises Unsupported if there are too many to read one by one."""
    count = sequence.length()
    if count > _MAX_ELEMENTS:
        raise Unsupported(f"a constant of {count} elements is not supported")
    return [sequence.apply(i) for i in range(count)]


def internal_value(value: Any, spark: Any) -> Any:
    """Convert a Catalyst value to a Python value: UTF-8 strings, decimals, and arrays, maps and rows by their elements."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(spark, dict):
        return _nested(value, spark)
    if spark == "string":
        try:
            return bytes(value.getBytes()).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Unsupported("a string value is not valid UTF-8") from error
    if isinstance(spark, str) and spark.startswith("decimal"):
        return from_text(value.toString(), pa.decimal128(38, 0))
    raise Unsupported(f"a constant of type {spark} cannot be read")


def _nested(value: Any, spark: dict[str, Any]) -> Any:
    # ``get`` requires Spark's DataType objects; the typed getters of SpecializedGetters do not.
    kind = spark["type"]
    if kind == "array":
        return [internal_element(value, i, spark["elementType"]) for i in range(_size(value))]
    if kind == "map":
        keys, items = value.keyArray(), value.valueArray()
        return [
            (internal_element(keys, i, spark["keyType"]), internal_element(items, i, spark["valueType"]))
            for i in range(_size(keys))
        ]
    if kind == "struct":
        return [internal_element(value, i, field["type"]) for i, field in enumerate(spark["fields"])]
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


def internal_element(owner: Any, i: int, spark: Any) -> Any:
    """The Python value of an element of a Catalyst row or array."""
    if owner.isNullAt(i):
        return None
    kind = spark["type"] if isinstance(spark, dict) else spark
    if kind == "struct":
        return internal_value(owner.getStruct(i, len(spark["fields"])), spark)
    if kind.startswith("decimal"):
        precision, scale = kind.removeprefix("decimal(").removesuffix(")").split(",")
        return internal_value(owner.getDecimal(i, int(precision), int(scale)), kind)
    if kind.startswith("interval "):
        return owner.getInt(i) if is_year_month(kind) else owner.getLong(i)
    getter = _GETTERS.get(kind)
    if getter is None:
        raise Unsupported(f"a constant of type {kind} cannot be read")
    return internal_value(getattr(owner, getter)(i), spark)
