"""The common type Spark gives two operands (ANSI mode's ``findTightestCommonType`` and widening)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from kquery_spark.types import decimals
from kquery_spark.types import names as t

_ORDER: Final = (t.BYTE, t.SHORT, t.INT, t.LONG, t.FLOAT, t.DOUBLE)


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type to which both operands are cast, or None if they have no common type.

    Follows Spark's ANSI type coercion: integer with float gives double, anything with a string takes the
    other side's type (bigint for integers and double for fractional numbers), date with timestamp gives timestamp.
    """
    if left == right:
        return left
    if t.NULL in (left, right):
        return _other_type(t.NULL, left, right)
    if t.STRING in (left, right):
        return _with_string(_other_type(t.STRING, left, right))
    if t.is_numeric(left) and t.is_numeric(right):
        return numeric_type(left, right)
    for is_kind, common in _NESTED:
        if is_kind(left) and is_kind(right):
            return common(left, right)
    return _common_time(left, right)


def as_floats(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    """Replace integer types by FLOAT if FLOAT is among the types: without ANSI mode their common type is not double."""
    if t.FLOAT not in types:
        return types
    return [t.FLOAT if t.is_integral(dtype) else dtype for dtype in types]


def _other_type(known: pa.DataType, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    return right if left == known else left


def _common_time(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """A date becomes a timestamp, and a timestamp without time zone one with it."""
    for a, b in ((left, right), (right, left)):
        if (a == t.DATE and pa.types.is_timestamp(b)) or (a == t.TIMESTAMP_NTZ and t.is_timestamp(b)):
            return b
    return None


def _common_list(left: pa.ListType, right: pa.ListType) -> pa.DataType | None:
    element = _common_field("element", left.value_field, right.value_field)
    return None if element is None else pa.list_(element)


def _common_map(left: pa.MapType, right: pa.MapType) -> pa.DataType | None:
    """Maps need the same key type, because a cast could make keys NULL or equal to each other."""
    value = _common_field("value", left.item_field, right.item_field)
    if left.key_type != right.key_type or value is None:
        return None
    return pa.map_(left.key_field, value)


def _common_struct(left: pa.StructType, right: pa.StructType) -> pa.DataType | None:
    if [f.name for f in left] != [f.name for f in right]:
        return None
    fields = []
    for a, b in zip(left, right, strict=True):
        field = _common_field(a.name, a, b)
        if field is None:
            return None
        fields.append(field)
    return pa.struct(fields)


def _common_field(name: str, left: pa.Field, right: pa.Field) -> pa.Field | None:
    """The common field. It is also nullable if strings are cast to another type, because that cast may give NULL."""
    dtype = common_type(left.type, right.type)
    if dtype is None:
        return None
    cast = t.STRING in (left.type, right.type) and left.type != right.type
    return pa.field(name, dtype, cast or left.nullable or right.nullable)


_NESTED: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any, Any], pa.DataType | None]], ...]] = (
    (pa.types.is_list, _common_list),
    (pa.types.is_struct, _common_struct),
    (pa.types.is_map, _common_map),
)


def numeric_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The common type of two numbers."""
    if t.is_decimal(left) or t.is_decimal(right):
        if t.is_fractional(left) or t.is_fractional(right):
            return t.DOUBLE
        a = left if t.is_decimal(left) else decimals.for_integral(left)
        b = right if t.is_decimal(right) else decimals.for_integral(right)
        return decimals.wider(a, b)
    if t.is_fractional(left) != t.is_fractional(right):
        return t.DOUBLE
    return max(left, right, key=_ORDER.index)


def _with_string(other: pa.DataType) -> pa.DataType | None:
    if t.is_integral(other):
        return t.LONG
    if t.is_numeric(other):
        return t.DOUBLE
    if t.is_nested(other) or other == t.BINARY:
        return t.BINARY if other == t.BINARY else None
    return other
