"""Functions that treat arrays as sets, or search a value in arrays.

Elements are compared by their ranks among all elements of a batch (``value_ranks``). A pair of row and rank becomes one
integer, ``row * width + rank + 1`` (NULL has the rank -1), so that set operations on all rows are a single ``np.isin`` or a
single search for first occurrences. For example, ``[b, a]`` and ``[a]`` in row 2 have ranks 1, 0 and 0; with width 3 they
become 8, 7 and 7, and the intersection is 7, the element a.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.functions.call_form import TWO_COLUMNS
from kquery_spark.functions.core.arguments import dense_mask
from kquery_spark.functions.core.conditional import common_argument_type
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.nested.arrays import array_rule, is_orderable, wrong_types
from kquery_spark.functions.registry import (
    CallContext,
    Function,
    Nullability,
    TypeRule,
    first_argument_type,
    register,
)
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
from kquery_spark.kernels.equal_rows import first_rows
from kquery_spark.kernels.integer_order import stable_order
from kquery_spark.kernels.ordered_bytes import has_floats
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector


def _elements_and_ranks(args: Sequence[Vector], length: int) -> tuple[Elements, Elements, Int64s, Int64s]:
    """Return the elements of two array columns, and their ranks among the values of both."""
    left, right = elements(args[0].array(length)), elements(args[1].array(length))
    sides = unify_types(left.values, right.values)
    left, right = (replace(side, values=values) for side, values in zip((left, right), sides, strict=True))
    values = pa.concat_arrays(sides)
    _check_zeros(values)
    ranks = value_ranks(values)
    return left, right, ranks[: len(left.rows)], ranks[len(left.rows) :]


def _select_elements(items: Elements, positions: Int64s, mask: Mask, context: CallContext) -> pa.Array:
    """Build arrays of the elements at ``positions`` only."""
    sizes = np.bincount(items.rows[positions], minlength=context.num_rows)
    return gather_lists(items.values, positions, sizes, mask, context.dtype)


def _first_occurrences(rows: Int64s, ranks: Int64s) -> Int64s:
    """Return the positions of the first occurrence of each value in each row, in ascending order."""
    if not len(rows):
        return np.zeros(0, np.int64)
    width = int(ranks.max()) + 2
    return first_rows(rows * width + ranks + 1)


def _check_zeros(values: pa.Array) -> None:
    """Raise Unsupported for -0.0, which is equal to 0.0 in sets in some releases of Spark, but not in others."""
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
    selected = _first_occurrences(items.rows, value_ranks(items.values))
    return _select_elements(items, selected, items.nulls, context)


def _is_in_other(rows: Int64s, ranks: Int64s, other_rows: Int64s, other: Int64s) -> Mask:
    """Return a mask of the elements that also occur in the other array of the same row; NULL is equal to NULL."""
    width = int(max(ranks.max(initial=0), other.max(initial=0))) + 2
    return np.isin(rows * width + ranks + 1, other_rows * width + other + 1)


def _intersect_or_except(is_intersect: bool) -> Callable[[Sequence[Vector], CallContext], Data]:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        left, right, a, b = _elements_and_ranks(args, n)
        mask = dense_mask(args, n)
        first = _first_occurrences(left.rows, a)
        first = first[~mask[left.rows[first]]]
        chosen = first[_is_in_other(left.rows[first], a[first], right.rows, b) == is_intersect]
        return _select_elements(left, chosen, mask, context)

    return run


def _union(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    left, right, a, b = _elements_and_ranks(args, n)
    rows, ranks = np.concatenate([left.rows, right.rows]), np.concatenate([a, b])
    mask = dense_mask(args, n)
    order = stable_order(rows)
    order = order[~mask[rows[order]]]
    selected = order[_first_occurrences(rows[order], ranks[order])]
    values = pa.concat_arrays(
        [cast_nullability(side.values, context.dtype.value_type) for side in (left, right)]
    )
    return gather_lists(values, selected, np.bincount(rows[selected], minlength=n), mask, context.dtype)


def _overlap(args: Sequence[Vector], context: CallContext) -> Data:
    """TRUE if the arrays have a common value; else NULL if one of them has a NULL and neither is empty; else FALSE."""
    n = context.num_rows
    left, right, a, b = _elements_and_ranks(args, n)
    shared = np.zeros(n, np.bool_)
    hit = _is_in_other(left.rows, a, right.rows, b) & (a >= 0)
    shared[left.rows[hit]] = True
    unknown = np.zeros(n, np.bool_)
    unknown[left.rows[a < 0]] = True
    unknown[right.rows[b < 0]] = True
    unknown &= ~shared & (left.sizes > 0) & (right.sizes > 0)
    return pa.array(shared, mask=unknown | dense_mask(args, n))


def _equals_value(args: Sequence[Vector], n: int) -> tuple[Elements, Mask]:
    """Return the elements of an array column, and a mask of those that are equal to the value of their row."""
    items = elements(args[0].array(n))
    ranks = value_ranks(pa.concat_arrays(unify_types(items.values, args[1].array(n))))
    element_ranks, searched_ranks = ranks[: len(items.rows)], ranks[len(items.rows) :]
    return items, (element_ranks >= 0) & (element_ranks == searched_ranks[items.rows])


def _position(args: Sequence[Vector], context: CallContext) -> Data:
    """Return the 1-based position of the first occurrence of a value; 0 if it is absent."""
    n = context.num_rows
    items, equal = _equals_value(args, n)
    positions = np.zeros(n, np.int64)
    hits = np.flatnonzero(equal)[::-1]  # reversed, since the last store to a repeated index wins
    positions[items.rows[hits]] = items.order[hits] + 1
    return pa.array(positions, mask=dense_mask(args, n))


def _remove(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    items, equal = _equals_value(args, n)
    mask = dense_mask(args, n)
    selected = np.flatnonzero(~equal & ~mask[items.rows])
    return _select_elements(items, selected, mask, context)


# --- types ----------------------------------------------------------------------------------------


def _array_and_element_rule(
    name: str, element: Callable[[pa.DataType], pa.DataType | None], result: pa.DataType | None = None
) -> TypeRule:
    """Build a type rule for an array and an argument; ``element`` maps the argument's type to the required element type."""

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


def _element_type(dtype: pa.DataType) -> pa.DataType | None:
    return dtype.value_type if is_orderable(dtype) else None


def _intersect_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return the first array's type; its elements are nullable if those of both arrays are."""
    field = _array_and_element_rule("array_intersect", _element_type)(types).value_field
    return pa.list_(field.with_nullable(field.nullable and types[1].value_field.nullable))


def _union_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return the common type of the arrays; a nested field is nullable if it is in one of them."""
    _array_and_element_rule("array_union", _element_type)(types)
    return common_argument_type(types)


def _same_type(dtype: pa.DataType) -> pa.DataType:
    return dtype


register(
    Function(
        "array_distinct",
        _distinct,
        array_rule("array_distinct", first_argument_type, is_orderable),
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
        _intersect_or_except(True),
        _intersect_type,
        catalyst=("ArrayIntersect",),
        arity=(2, 2),
        calls=TWO_COLUMNS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "array_except",
        _intersect_or_except(False),
        _array_and_element_rule("array_except", _element_type),
        catalyst=("ArrayExcept",),
        arity=(2, 2),
        calls=TWO_COLUMNS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "arrays_overlap",
        _overlap,
        _array_and_element_rule("arrays_overlap", _element_type, t.BOOL),
        catalyst=("ArraysOverlap",),
        arity=(2, 2),
        calls=TWO_COLUMNS,
        nullable=Nullability.OTHER_REASONS,
        evaluates=(0, 1),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "array_position",
        _position,
        _array_and_element_rule("array_position", _same_type, t.LONG),
        catalyst=("ArrayPosition",),
        arity=(2, 2),
        coerce=coerce_to_element,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "array_remove",
        _remove,
        _array_and_element_rule("array_remove", _same_type),
        catalyst=("ArrayRemove",),
        arity=(2, 2),
        coerce=coerce_to_element,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
)
