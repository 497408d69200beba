"""Converts Spark's JSON data types to Arrow types and back.

A ``timestamp`` becomes an Arrow timestamp in the session's time zone, a ``timestamp_ntz`` one without a zone, and a day-time
interval a duration; all of these are in microseconds, as in Spark. A year-month interval becomes ``names.YEAR_MONTH``. A
time of day is in nanoseconds, as in Spark, and has up to six decimals of a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.types import names as t
from kquery_spark.types.spark_json import ATOMIC, COLLATIONS_KEY, DECIMAL, RAW_TYPE_KEY

_NAMES = {
    **{arrow: name for name, arrow in ATOMIC.items()},
    **dict.fromkeys((pa.large_string(), pa.string_view()), "string"),
    **dict.fromkeys((pa.large_binary(), pa.binary_view()), "binary"),
    t.DAY_TIME: "interval day to second",
    t.YEAR_MONTH: "interval year to month",
    t.TIME: "time(6)",
}
_CHAR = re.compile(r"(char|varchar)\(\d+\)")
_DAY_TIME = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")
_TIME = re.compile(r"time\(([0-6])\)")
_YEAR_MONTH = re.compile(r"interval (year|month)( to month)?")
MONTHS_WITHIN = "year-month intervals inside of arrays, maps and structs are not supported"
_PLAIN_COLLATION = "UTF8_BINARY"  # the default collation
_VARIANT = "__VARIANT_METADATA_KEY"


@dataclass(frozen=True)
class VariantPath:
    """A value that a scan extracts from a variant: the arguments of ``variant_get``."""

    path: str
    type: Any
    fails: bool
    time_zone: str


def is_year_month(spark: Any) -> bool:
    """Return whether a Spark type in JSON is an interval of years and months."""
    return isinstance(spark, str) and _YEAR_MONTH.fullmatch(spark) is not None


def is_exact_in_arrow(spark: Any) -> bool:
    """Return whether the Arrow type of a Spark type in JSON loses nothing; intervals lose units, times their precision."""
    if isinstance(spark, dict):
        return all(is_exact_in_arrow(part) for part in _parts_of(spark))
    exact = (_NAMES[t.DAY_TIME], _NAMES[t.TIME])
    return (
        spark in exact or not isinstance(spark, str) or not (_DAY_TIME.fullmatch(spark) or _TIME.match(spark))
    )


def decimals_of_time(spark: str) -> int:
    """The number of decimals of a second in a time type, from its name."""
    match = _TIME.fullmatch(spark)
    assert match is not None
    return int(match[1])


def has_coarse_times(spark: Any) -> bool:
    """Return whether a Spark type in JSON is or contains a time type with fewer than six decimals of a second."""
    if isinstance(spark, dict):
        return any(has_coarse_times(part) for part in _parts_of(spark))
    return isinstance(spark, str) and _TIME.fullmatch(spark) is not None and spark != _NAMES[t.TIME]


def _parts_of(spark: dict[str, Any]) -> list[Any]:
    """The JSON types of the direct children of a nested type."""
    fields = [field["type"] for field in spark.get("fields", ())]
    return [*fields, *(spark[name] for name in ("elementType", "keyType", "valueType") if name in spark)]


def arrow_type(spark: Any, time_zone: str) -> pa.DataType:
    """The Arrow type of a ``DataType.jsonValue`` (a name, or an object for struct, array and map).

    Raises Unsupported for types whose values or comparisons the engine does not support exactly.
    """
    if isinstance(spark, dict):
        dtype = _nested(spark, time_zone)
        if t.has_months_within(dtype):
            raise Unsupported(MONTHS_WITHIN)
        return dtype
    if not isinstance(spark, str):
        raise Unsupported(f"the data type {spark!r} is not known")
    atomic = ATOMIC.get(spark.removesuffix(f" collate {_PLAIN_COLLATION}"))
    if atomic is not None:
        return atomic
    if spark == "timestamp":
        return pa.timestamp("us", tz=time_zone)
    if match := DECIMAL.fullmatch(spark):
        precision, scale = int(match[1]), int(match[2])
        if not 0 <= scale <= precision <= 38:
            raise Unsupported(f"the type {spark} has a negative or too large scale")
        return pa.decimal128(precision, scale)
    if _DAY_TIME.fullmatch(spark):
        return t.DAY_TIME
    if _YEAR_MONTH.fullmatch(spark):
        return t.YEAR_MONTH
    if _TIME.fullmatch(spark):
        return t.TIME
    raise Unsupported(_unsupported_reason(spark))


def is_variant(spark: Any) -> bool:
    """Return whether a Spark type in JSON is a variant, or the struct of values at some paths that a scan extracts."""
    if isinstance(spark, dict):
        fields = spark.get("fields", ())
        return bool(fields) and all(_VARIANT in (field.get("metadata") or {}) for field in fields)
    return bool(spark == "variant")


def variant_path(spark: Any, ordinal: int) -> VariantPath | None:
    """Return the path of a field of such a struct; None if the field is the whole variant."""
    if not isinstance(spark, dict):
        return None
    field = spark["fields"][ordinal]
    read = field["metadata"][_VARIANT]
    return VariantPath(read["path"], field["type"], read["failOnError"], read["timeZoneId"])


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


def arrow_schema(struct: dict[str, Any], time_zone: str, reads_variants: bool = False) -> pa.Schema:
    """The Arrow schema of a ``StructType`` in JSON; char(n) and varchar(n) declarations are stored as metadata.

    reads_variants: True if columns may be variants.
    """
    if not reads_variants:
        return pa.schema(_fields(struct, time_zone))
    fields = struct["fields"]
    columns = [
        pa.field(f["name"], t.VARIANT, f["nullable"]) if is_variant(f["type"]) else _field(f, time_zone)
        for f in fields
    ]
    return pa.schema(columns)


def _nested(spark: dict[str, Any], time_zone: str) -> pa.DataType:
    kind = spark.get("type")
    if kind == "struct":
        return pa.struct(_fields(spark, time_zone))
    if kind == "array":
        return pa.list_(_part("element", spark["elementType"], spark["containsNull"], time_zone))
    if kind == "map":
        return pa.map_(
            _part("key", spark["keyType"], False, time_zone),
            _part("value", spark["valueType"], spark["valueContainsNull"], time_zone),
        )
    if kind == "udt":
        raise Unsupported("user-defined types are not supported")
    raise Unsupported(f"the data type {kind!r} is not known")


def _part(name: str, spark: Any, nullable: bool, time_zone: str) -> pa.Field:
    dtype = arrow_type(spark, time_zone)
    if pa.types.is_null(dtype) and not nullable:
        raise Unsupported("a type without values, that of ARRAY() and MAP(), is not supported")
    return pa.field(name, dtype, nullable)


def _fields(struct: dict[str, Any], time_zone: str) -> list[pa.Field]:
    return [_field(field, time_zone) for field in struct["fields"]]


def _field(field: dict[str, Any], time_zone: str) -> pa.Field:
    metadata = field.get("metadata") or {}
    # Unlike an expression, a schema has a column's collation only in its metadata.
    collations = metadata.get(COLLATIONS_KEY, {})
    if not all(str(name).endswith(_PLAIN_COLLATION) for name in collations.values()):
        raise Unsupported(f"column {field['name']} has a collation, which the engine does not compare by")
    if _VARIANT in metadata:
        raise Unsupported(f"column {field['name']} is a variant that Spark takes apart while it reads")
    own_metadata = {RAW_TYPE_KEY: metadata[RAW_TYPE_KEY]} if RAW_TYPE_KEY in metadata else None
    return _part(field["name"], field["type"], field["nullable"], time_zone).with_metadata(own_metadata)


def _spark_field(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": spark_type(field.type), "nullable": field.nullable, "metadata": {}}


def _unsupported_reason(spark: str) -> str:
    if spark.startswith("string collate"):
        return f"{spark.removeprefix('string ')} needs collation-aware comparison"
    if spark == "interval":
        return "calendar intervals are not supported"
    if spark == "variant":
        return "variant values are not supported"
    if spark.startswith("time("):
        return "times of more than six decimals of a second are not supported"
    if _CHAR.fullmatch(spark):
        return f"{spark} columns need padding and length checks that fall back to Spark"
    return f"the data type {spark!r} is not known"
