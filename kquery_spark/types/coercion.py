"""The common type Spark gives two operands (ANSI mode's ``findTightestCommonType`` and widening)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from kquery_spark.types import decimals
from kquery_spark.types import names as t

_ORDER: Final = (t.BYTE, t.SHORT, t.INT, t.LONG, t.FLOAT, t.DOUBLE)


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type both sides are cast to before they meet, or None when there is none.

    Follows Spark's ANSI type coercion: integer with float gives double, anything with a string takes the
    other side's type (bigint for integers and double for fractional numbers), date with timestamp gives timestamp.
    """
    if left == right:
        return left
    if left == t.NULL:
        return right
    if right == t.NULL:
        return left
    if t.is_numeric(left) and t.is_numeric(right):
        return numeric_type(left, right)
    for a, b in ((left, right), (right, left)):
        if a == t.STRING:
            return _with_string(b)
        if a == t.DATE and pa.types.is_timestamp(b):
            return b
        if a == t.TIMESTAMP_NTZ and t.is_timestamp(b):
            return b
    if pa.types.is_list(left) and pa.types.is_list(right):
        inner = common_type(left.value_type, right.value_type)
        if inner is None:
            return None
        # the cast of a string to another type may give NULL
        cast = t.STRING in (left.value_type, right.value_type) and left.value_type != right.value_type
        nullable = cast or left.value_field.nullable or right.value_field.nullable
        return pa.list_(pa.field("element", inner, nullable))
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        return _common_struct(left, right)
    if pa.types.is_map(left) and pa.types.is_map(right):
        return _common_map(left, right)
    return None


def _common_map(left: pa.MapType, right: pa.MapType) -> pa.DataType | None:
    """Maps of one key type: a key that a cast makes NULL or equal to another would be no key any more."""
    value = common_type(left.item_type, right.item_type)
    if left.key_type != right.key_type or value is None:
        return None
    cast = t.STRING in (left.item_type, right.item_type) and left.item_type != right.item_type
    nullable = cast or left.item_field.nullable or right.item_field.nullable
    return pa.map_(left.key_field, pa.field("value", value, nullable))


def _common_struct(left: pa.StructType, right: pa.StructType) -> pa.DataType | None:
    if [f.name for f in left] != [f.name for f in right]:
        return None
    fields = []
    for a, b in zip(left, right, strict=True):
        inner = common_type(a.type, b.type)
        if inner is None:
            return None
        cast = t.STRING in (a.type, b.type) and a.type != b.type
        fields.append(pa.field(a.name, inner, cast or a.nullable or b.nullable))
    return pa.struct(fields)


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
