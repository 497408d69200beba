"""Arrays as sets, and searches for a value: elements are compared by codes of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.functions.call_form import TWO_COLUMNS
from kquery_spark.functions.core.conditional import one_type
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.nested.arrays import array_rule, is_orderable, wrong_types
from kquery_spark.functions.registry import CallContext, Function, TypeRule, register, same
from kquery_spark.functions.strings.basics import dense_mask
from kquery_spark.kernels.elements import (
    Elements,
    Mask,
    cast_nullability,
    coerce_to_element,
    elements,
    gather_lists,
    unify_types,
    value_ranks,
)
from kquery_spark.kernels.integer_order import first_rows, stable_order
from kquery_spark.kernels.ordered_bytes import has_floats
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector


def _both(args: Sequence[Vector], length: int) -> tuple[Elements, Elements, Int64s, Int64s]:
    """The elements of two arrays, with codes of their common values."""
    left, right = elements(args[0].array(length)), elements(args[1].array(length))
    sides = unify_types(left.values, right.values)
    left, right = (replace(side, values=values) for side, values in zip((left, right), sides, strict=True))
    values = pa.concat_arrays(sides)
    _check_zeros(values)
    joint = value_ranks(values)
    return left, right, joint[: len(left.rows)], joint[len(left.rows) :]


def _selected(items: Elements, positions: Int64s, mask: Mask, context: CallContext) -> pa.Array:
    """The arrays with the elements at ``positions`` only."""
    sizes = np.bincount(items.rows[positions], minlength=context.num_rows)
    return gather_lists(items.values, positions, sizes, mask, context.dtype)


def _first_of_each(rows: Int64s, value_codes: Int64s) -> Int64s:
    """Positions of the first element of each value of each row, in their order."""
    if not len(rows):
        return np.zeros(0, np.int64)
    width = int(value_codes.max()) + 2
    return first_rows(rows * width + value_codes + 1)


def _check_zeros(values: pa.Array) -> None:
    """Raise Unsupported for -0.0, which some releases of Spark take for 0.0 in sets, and others do not."""
    dtype = values.type
    if t.is_fractional(dtype):
        reals = values.fill_null(1).to_numpy(zero_copy_only=False)
        if ((reals == 0) & np.signbit(reals)).any():
            raise Unsupported("sets of elements with -0.0 are not supported")
    elif has_floats(dtype):
        parts = values.flatten() if pa.types.is_struct(dtype) else [values.flatten()]
        for part in parts:
            _check_zeros(part)


def _distinct(args: Sequence[Vector], context: CallContext) -> Data:
    items = elements(args[0].array(context.num_rows))
    _check_zeros(items.values)
    selected = _first_of_each(items.rows, value_ranks(items.values))
    return _selected(items, selected, items.nulls, context)


def _among(rows: Int64s, value_codes: Int64s, other_rows: Int64s, other: Int64s) -> Mask:
    """Which elements are among the other array's of the same row (NULL among NULLs)."""
    width = int(max(value_codes.max(initial=0), other.max(initial=0))) + 2
    return np.isin(rows * width + value_codes + 1, other_rows * width + other + 1)


def _common(keep: bool) -> Callable[[Sequence[Vector], CallContext], Data]:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        left, right, a, b = _both(args, n)
        mask = dense_mask(args, n)
        first = _first_of_each(left.rows, a)
        first = first[~mask[left.rows[first]]]
        chosen = first[_among(left.rows[first], a[first], right.rows, b) == keep]
        return _selected(left, chosen, mask, context)

    return run


def _union(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    left, right, a, b = _both(args, n)
    rows, value_codes = np.concatenate([left.rows, right.rows]), np.concatenate([a, b])
    mask = dense_mask(args, n)
    order = stable_order(rows)
    order = order[~mask[rows[order]]]
    selected = order[_first_of_each(rows[order], value_codes[order])]
    values = pa.concat_arrays(
        [cast_nullability(side.values, context.dtype.value_type) for side in (left, right)]
    )
    return gather_lists(values, selected, np.bincount(rows[selected], minlength=n), mask, context.dtype)


def _overlap(args: Sequence[Vector], context: CallContext) -> Data:
    """TRUE for a common value, else NULL where a NULL might be one (neither being empty)."""
    n = context.num_rows
    left, right, a, b = _both(args, n)
    shared = np.zeros(n, np.bool_)
    hit = _among(left.rows, a, right.rows, b) & (a >= 0)
    shared[left.rows[hit]] = True
    unknown = np.zeros(n, np.bool_)
    unknown[left.rows[a < 0]] = True
    unknown[right.rows[b < 0]] = True
    unknown &= ~shared & (left.sizes > 0) & (right.sizes > 0)
    return pa.array(shared, mask=unknown | dense_mask(args, n))


def _against(args: Sequence[Vector], n: int) -> tuple[Elements, Mask]:
    """The elements of an array, and which of them equal the row's value."""
    items = elements(args[0].array(n))
    joint = value_ranks(pa.concat_arrays(unify_types(items.values, args[1].array(n))))
    mine, other = joint[: len(items.rows)], joint[len(items.rows) :]
    return items, (mine >= 0) & (mine == other[items.rows])


def _position(args: Sequence[Vector], context: CallContext) -> Data:
    """The position of the first occurrence of a value, from 1; 0 when it is absent."""
    n = context.num_rows
    items, equal = _against(args, n)
    positions = np.zeros(n, np.int64)
    hits = np.flatnonzero(equal)[::-1]
    positions[items.rows[hits]] = items.order[hits] + 1
    return pa.array(positions, mask=dense_mask(args, n))


def _remove(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    items, equal = _against(args, n)
    mask = dense_mask(args, n)
    selected = np.flatnonzero(~equal & ~mask[items.rows])
    return _selected(items, selected, mask, context)


# --- types ----------------------------------------------------------------------------------------


def _pair(
    name: str, element: Callable[[pa.DataType], pa.DataType | None], result: pa.DataType | None = None
) -> TypeRule:
    """For an array and an argument whose ``element`` type (None: no such type) must be that of the array's elements."""

    def rule(types: Sequence[pa.DataType]) -> pa.DataType:
        other = element(types[1])
        if (
            not is_orderable(types[0])
            or other is None
            or t.spark_name(types[0].value_type) != t.spark_name(other)
        ):
            raise wrong_types(name, types)
        return types[0] if result is None else result

    return rule


def _of_array(dtype: pa.DataType) -> pa.DataType | None:
    return dtype.value_type if is_orderable(dtype) else None


def _intersect_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The first array's type; an element can be NULL if it can in both."""
    field = _pair("array_intersect", _of_array)(types).value_field
    return pa.list_(field.with_nullable(field.nullable and types[1].value_field.nullable))


def _union_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The arrays' common type: a part that may be NULL in one of them may be in it."""
    _pair("array_union", _of_array)(types)
    return one_type(types)


def _itself(dtype: pa.DataType) -> pa.DataType:
    return dtype


register(
    Function(
        "array_distinct",
        _distinct,
        array_rule("array_distinct", same, is_orderable),
        catalyst=("ArrayDistinct",),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "array_union",
        _union,
        _union_type,
        catalyst=("ArrayUnion",),
        arity=(2, 2),
        calls=TWO_COLUMNS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "array_intersect",
        _common(True),
        _intersect_type,
        catalyst=("ArrayIntersect",),
        arity=(2, 2),
        calls=TWO_COLUMNS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "array_except",
        _common(False),
        _pair("array_except", _of_array),
        catalyst=("ArrayExcept",),
        arity=(2, 2),
        calls=TWO_COLUMNS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "arrays_overlap",
        _overlap,
        _pair("arrays_overlap", _of_array, t.BOOL),
        catalyst=("ArraysOverlap",),
        arity=(2, 2),
        calls=TWO_COLUMNS,
        nullable="always",
        evaluates=(0, 1),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "array_position",
        _position,
        _pair("array_position", _itself, t.LONG),
        catalyst=("ArrayPosition",),
        arity=(2, 2),
        coerce=coerce_to_element,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "array_remove",
        _remove,
        _pair("array_remove", _itself),
        catalyst=("ArrayRemove",),
        arity=(2, 2),
        coerce=coerce_to_element,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
)
