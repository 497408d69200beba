"""Converts Catalyst's internal values to Arrow scalars.

The internal value of a date is the number of days since 1970, that of a timestamp or interval is in microseconds, and that
of a time of day in nanoseconds. An array is a sequence, a struct a sequence of its fields, and a map a sequence of
(key, value) pairs.
"""

from __future__ import annotations

import decimal
import struct
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.functions.casts.times import parse_time
from kquery_spark.types import names as t


def from_text(text: str, arrow: pa.DataType) -> Any:
    """Parse an internal value (days, microseconds, a number, a string) from its ``toString``."""
    if pa.types.is_boolean(arrow):
        return {"true": True, "false": False}[text]
    if pa.types.is_floating(arrow):
        return float(text)
    if pa.types.is_decimal(arrow):
        return decimal.Decimal(text)
    if pa.types.is_string(arrow):
        if "\ufffd" in text:
            raise Unsupported("a string value may not be valid UTF-8")
        return text
    if arrow == t.TIME and ":" in text:  # literals of times print as HH:mm:ss
        return _nanoseconds(text)
    if pa.types.is_integer(arrow) or pa.types.is_temporal(arrow):
        return int(text)
    raise Unsupported(f"a value of type {arrow} cannot be read from text")


def _nanoseconds(text: str) -> int:
    nanos = parse_time(text)
    if nanos is None:
        raise Unsupported(f"{text} cannot be parsed as a time")
    return nanos


def array_of_strings(strings: list[str | None], arrow: pa.DataType) -> pa.Array:
    """Build a column of a flat type from the ``toString`` of its internal values, None for NULL."""
    if pa.types.is_date32(arrow) or pa.types.is_temporal(arrow) or pa.types.is_integer(arrow):
        whole = pa.array(strings, pa.string()).cast(pa.int64())
        return (whole.cast(pa.int32()) if pa.types.is_date32(arrow) else whole).cast(arrow)
    values = [None if text is None else from_text(text, arrow) for text in strings]
    if pa.types.is_float32(arrow):
        values = [None if value is None else _float32(value) for value in values]
    return pa.array(values, arrow)


def scalar(value: Any, arrow: pa.DataType) -> pa.Scalar:
    """Convert an internal value to an Arrow scalar.

    Temporal values are converted from integers, because Python's dates do not support years before 1 and after 9999.
    """
    if value is None:
        return pa.scalar(None, arrow)
    if pa.types.is_date32(arrow):
        return pa.scalar(value, pa.int32()).cast(arrow)
    if pa.types.is_temporal(arrow):
        return pa.scalar(value, pa.int64()).cast(arrow)
    if pa.types.is_float32(arrow):
        # Java prints the shortest string that parses to the float; parsed as a double, it must be rounded to float again.
        return pa.scalar(_float32(value), arrow)
    if pa.types.is_nested(arrow):
        # Through arrays of internal values, so that the leaves of a list, struct or map are converted like others.
        return array_of_values([value], arrow)[0]
    return pa.scalar(value, arrow)


def array_of_values(values: list[Any], arrow: pa.DataType) -> pa.Array:
    """Build a column of any type from internal values."""
    if pa.types.is_list(arrow):
        offsets, flat = _flatten(values)
        return pa.ListArray.from_arrays(offsets, array_of_values(flat, arrow.value_type), type=arrow)
    if pa.types.is_map(arrow):
        offsets, flat = _flatten(values)
        keys = array_of_values([pair[0] for pair in flat], arrow.key_type)
        items = array_of_values([pair[1] for pair in flat], arrow.item_type)
        return pa.MapArray.from_arrays(offsets, keys, items, type=arrow)
    if pa.types.is_struct(arrow):
        return _struct_array(values, arrow)
    return pa.array([scalar(value, arrow) for value in values], arrow)


def _struct_array(rows: list[Any], arrow: pa.DataType) -> pa.Array:
    columns = [
        array_of_values([None if row is None else row[i] for row in rows], field.type)
        for i, field in enumerate(arrow)
    ]
    mask = pa.array([row is None for row in rows], pa.bool_())
    return pa.StructArray.from_arrays(columns, fields=list(arrow), mask=mask)


def _flatten(values: list[Any]) -> tuple[pa.Array, list[Any]]:
    offsets: list[int | None] = []
    flat: list[Any] = []
    for value in values:
        offsets.append(None if value is None else len(flat))
        flat.extend(value or [])
    return pa.array([*offsets, len(flat)], pa.int32()), flat


def _float32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError as error:
        raise Unsupported(f"{value} is not a float") from error
