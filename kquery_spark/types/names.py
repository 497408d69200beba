"""Spark's names for Arrow types, and predicates over type families."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.types as pt

NULL: Final = pa.null()
BOOL: Final = pa.bool_()
BYTE: Final = pa.int8()
SHORT: Final = pa.int16()
INT: Final = pa.int32()
LONG: Final = pa.int64()
FLOAT: Final = pa.float32()
DOUBLE: Final = pa.float64()
STRING: Final = pa.string()
BINARY: Final = pa.binary()
DATE: Final = pa.date32()
TIMESTAMP_NTZ: Final = pa.timestamp("us")
DAY_TIME: Final = pa.duration("us")
YEAR_MONTH: Final = pa.duration("s")
"""An interval of years and months. It counts months, not seconds: Arrow has no kernels for its own interval type."""
TIME: Final = pa.time64("ns")
"""A time of day in nanoseconds, as in Spark. Its Spark type, ``time(6)``, has up to six decimals of a second."""
INTERVAL_STORAGE: Final = {DAY_TIME: LONG, YEAR_MONTH: INT}
"""The integer types in which Spark and its files store intervals, as counts of microseconds and of months."""

VARIANT: Final = pa.struct([pa.field("__variant_value", BINARY), pa.field("__variant_metadata", BINARY)])
"""A variant in Spark's own encoding. The field names are so unusual that no struct of a query looks like a variant."""

_NAMES: Final = {
    NULL: "void",
    BOOL: "boolean",
    BYTE: "tinyint",
    SHORT: "smallint",
    INT: "int",
    LONG: "bigint",
    FLOAT: "float",
    DOUBLE: "double",
    STRING: "string",
    BINARY: "binary",
    DATE: "date",
    TIMESTAMP_NTZ: "timestamp_ntz",
    DAY_TIME: "interval day to second",
    YEAR_MONTH: "interval year to month",
    TIME: "time(6)",
    VARIANT: "variant",
}


def timestamp(tz: str) -> pa.DataType:
    """Spark's ``timestamp`` (an instant), carrying the session time zone it is shown in."""
    return pa.timestamp("us", tz=tz)


def decimal(precision: int, scale: int) -> pa.DataType:
    """Spark's ``decimal(precision, scale)``."""
    return pa.decimal128(precision, scale)


def spark_name(dtype: pa.DataType) -> str:
    """The type as Spark SQL writes it (``bigint``, ``decimal(12,2)``, ``array<string>``)."""
    name = _NAMES.get(dtype)
    if name is not None:
        return name
    if pt.is_decimal(dtype):
        return f"decimal({dtype.precision},{dtype.scale})"
    if pt.is_timestamp(dtype):
        return "timestamp"
    if pt.is_map(dtype):
        return f"map<{spark_name(dtype.key_type)},{spark_name(dtype.item_type)}>"
    if pt.is_list(dtype):
        return f"array<{spark_name(dtype.value_type)}>"
    if pt.is_struct(dtype):
        return f"struct<{','.join(f'{f.name}:{spark_name(f.type)}' for f in dtype)}>"
    return str(dtype)


def is_spark_type(dtype: pa.DataType) -> bool:
    """Return whether Spark has the type and the engine holds its values in exactly this Arrow type."""
    if pt.is_map(dtype):
        return is_spark_type(dtype.key_type) and is_spark_type(dtype.item_type)
    if pt.is_list(dtype) or pt.is_struct(dtype):
        return all(is_spark_type(dtype.field(i).type) for i in range(dtype.num_fields))
    if pt.is_timestamp(dtype):
        return bool(dtype.unit == "us")
    return dtype in _NAMES or bool(pt.is_decimal128(dtype))


def is_decimal(dtype: pa.DataType) -> bool:
    """Return whether the type is a decimal."""
    return bool(pt.is_decimal(dtype))


def is_integral(dtype: pa.DataType) -> bool:
    """Return whether the type is one of Spark's integers (tinyint to bigint)."""
    return dtype in (BYTE, SHORT, INT, LONG)


def is_fractional(dtype: pa.DataType) -> bool:
    """Return whether the type is float or double."""
    return dtype in (FLOAT, DOUBLE)


def is_numeric(dtype: pa.DataType) -> bool:
    """Return whether arithmetic is defined on the type."""
    return is_integral(dtype) or is_fractional(dtype) or is_decimal(dtype)


def is_string(dtype: pa.DataType) -> bool:
    """Return whether the type is string."""
    return bool(dtype == STRING)


def is_timestamp(dtype: pa.DataType) -> bool:
    """Return whether the type is ``timestamp`` (with the session time zone), not ``timestamp_ntz``."""
    return bool(pt.is_timestamp(dtype)) and dtype.tz is not None


def is_interval(dtype: pa.DataType) -> bool:
    """Return whether the type is a day-time or a year-month interval."""
    return dtype in INTERVAL_STORAGE


def has_long_counts(dtype: pa.DataType) -> bool:
    """Return whether values are stored as 64-bit counts: timestamps, intervals and times of day."""
    return bool(pt.is_timestamp(dtype)) or is_interval(dtype) or bool(dtype == TIME)


def has_months_within(dtype: pa.DataType) -> bool:
    """Return whether a nested type contains year-month intervals."""
    return any(part == YEAR_MONTH or has_months_within(part) for part in parts_of(dtype))


def has_variants(dtype: pa.DataType) -> bool:
    """Return whether a type is a variant, or contains variants."""
    return bool(dtype == VARIANT) or any(map(has_variants, parts_of(dtype)))


def is_nested(dtype: pa.DataType) -> bool:
    """Return whether the type is an array, a map or a struct."""
    return bool(pt.is_nested(dtype))


def nullable_within(dtype: pa.DataType) -> pa.DataType:
    """Make all nested fields nullable: Spark ignores the nullability that files declare, and any value may be NULL."""
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(f.name, nullable_within(f.type)) for f in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(nullable_within(dtype.key_type), nullable_within(dtype.item_type))
    return pa.list_(nullable_within(dtype.value_type)) if pa.types.is_list(dtype) else dtype


def contains_string(dtype: pa.DataType) -> bool:
    """Return whether a type is, or has a part that is, a string."""
    return bool(dtype == STRING) or any(map(contains_string, parts_of(dtype)))


def has_distinct_fields(dtype: pa.DataType) -> bool:
    """Return False for structs without fields or with two fields of the same name; True for all other types."""
    return not pt.is_struct(dtype) or len({field.name for field in dtype}) == dtype.num_fields > 0


def parts_of(dtype: pa.DataType) -> list[pa.DataType]:
    """The types of the direct children of a nested type; for a map, its key and item types instead of the entries."""
    if pa.types.is_map(dtype):
        return [dtype.key_type, dtype.item_type]
    return [dtype.field(i).type for i in range(dtype.num_fields)] if is_nested(dtype) else []


def has_floats(dtype: pa.DataType) -> bool:
    """Return whether the type is FLOAT or DOUBLE, or contains one of them."""
    return is_fractional(dtype) or any(map(has_floats, parts_of(dtype)))
