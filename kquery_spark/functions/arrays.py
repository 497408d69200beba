"""Arrays as wholes: sorting, sets, slices, joining."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import ALL_COLUMNS, THREE_COLUMNS, TWO_COLUMNS, CallForm
from kquery_spark.functions.registry import CallContext, EvalMode, Function, Operator, VersionChange, register
from kquery_spark.functions.strings import coerce_concat, concat, concat_type, dense_mask, numbers
from kquery_spark.kernels.elements import (
    Elements,
    Mask,
    check_size,
    codes,
    element_of,
    elements,
    is_array,
    list_array,
    listed,
)
from kquery_spark.kernels.integer_order import first_rows, lexicographic_order, stable_order
from kquery_spark.kernels.ordered_bytes import can_order, has_floats
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_gather, reserve_rows
from kquery_spark.types.vector import Data, Int64s, Vector


def _both(args: Sequence[Vector], length: int) -> tuple[Elements, Elements, Int64s, Int64s]:
    """The elements of two arrays, with codes of their common values."""
    left, right = elements(args[0].array(length)), elements(args[1].array(length))
    if len({x.values.type for x in (left, right)}) > 1:
        right = Elements(right.sizes, right.rows, right.values.cast(left.values.type), right.nulls)
    values = pa.concat_arrays([left.values, right.values])
    _check_zeros(values)
    joint = codes(values)
    return left, right, joint[: len(left.rows)], joint[len(left.rows) :]


def _first_of_each(rows: Int64s, value_codes: Int64s) -> Int64s:
    """Positions of the first element of each value of each row, in their order."""
    if not len(rows):
        return np.zeros(0, np.int64)
    width = int(value_codes.max()) + 2
    return first_rows(rows * width + value_codes + 1)


def _counts(rows: Int64s, length: int) -> Int64s:
    return np.bincount(rows, minlength=length)[:length] if length else np.zeros(0, np.int64)


# --- order ----------------------------------------------------------------------------------------


def _sort(args: Sequence[Vector], context: CallContext) -> Data:
    """Ascending with NULLs first, or descending with NULLs last; equal values keep their order.

    Spark sorts numbers without NULLs by ``java.util.Arrays.sort``, for which -0.0 comes before 0.0.
    """
    n = context.num_rows
    items = elements(args[0].array(n))
    ascending = args[1].data.as_py() if len(args) > 1 else True
    ranks = codes(items.values)
    element = args[0].dtype.value_field
    if ascending and t.is_fractional(element.type) and not items.values.null_count:
        reals = items.values.to_numpy(zero_copy_only=False)
        zeros, negative = reals == 0, np.signbit(reals)
        if not element.nullable:
            ranks = 2 * ranks + ~(zeros & negative)
        elif len(np.intersect1d(items.rows[zeros & negative], items.rows[zeros & ~negative])):
            raise Unsupported(
                "sort_array of 0.0 and -0.0 where it is not known whether an element can be NULL."
            )
    order = lexicographic_order([items.rows, ranks if ascending else -ranks])
    return listed(items.values, order, items.sizes, items.nulls, context.dtype)


def _extreme(largest: bool) -> Callable[[Sequence[Vector], CallContext], Data]:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        items = elements(args[0].array(n))
        ranks = codes(items.values)
        known = np.flatnonzero(ranks >= 0)
        key = -ranks[known] if largest else ranks[known]
        order = known.take(lexicographic_order([items.rows[known], key]))
        rows, first = np.unique(items.rows[order], return_index=True)
        positions = np.full(n, -1, np.int64)
        positions[rows] = order[first]
        return items.values.take(pa.array(np.maximum(positions, 0), mask=positions < 0))

    return run


# --- sets -----------------------------------------------------------------------------------------


def _check_zeros(values: pa.Array) -> None:
    """Raise Unsupported for -0.0, which some releases of Spark take for 0.0 in sets, and others do not."""
    dtype = values.type
    if t.is_fractional(dtype):
        reals = values.fill_null(1).to_numpy(zero_copy_only=False)
        if ((reals == 0) & np.signbit(reals)).any():
            raise Unsupported("Sets of elements with -0.0 stay with Spark.")
    elif has_floats(dtype):
        parts = values.flatten() if pa.types.is_struct(dtype) else [values.flatten()]
        for part in parts:
            _check_zeros(part)


def _distinct(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    items = elements(args[0].array(n))
    _check_zeros(items.values)
    selected = _first_of_each(items.rows, codes(items.values))
    return listed(items.values, selected, _counts(items.rows[selected], n), items.nulls, context.dtype)


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
        return listed(left.values, chosen, _counts(left.rows[chosen], n), mask, context.dtype)

    return run


def _union(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    left, right, a, b = _both(args, n)
    rows, value_codes = np.concatenate([left.rows, right.rows]), np.concatenate([a, b])
    mask = dense_mask(args, n)
    order = stable_order(rows)
    order = order[~mask[rows[order]]]
    selected = order[_first_of_each(rows[order], value_codes[order])]
    values = pa.concat_arrays([left.values, right.values.cast(left.values.type)])
    return listed(values, selected, _counts(rows[selected], n), mask, context.dtype)


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
    needles = args[1].array(n)
    joint = codes(pa.concat_arrays([items.values, needles.cast(items.values.type)]))
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
    return listed(items.values, selected, _counts(items.rows[selected], n), mask, context.dtype)


# --- parts and wholes -----------------------------------------------------------------------------


def _concat(args: Sequence[Vector], context: CallContext) -> Data:
    """The elements of all arrays, one after the other; NULL where one of them is NULL."""
    if not is_array(context.dtype):
        return concat(args, context)
    n, element = context.num_rows, context.dtype.value_type
    mask = dense_mask(args, n)
    parts = [elements(a.array(n)) for a in args]
    rows = np.concatenate([p.rows for p in parts])
    order = stable_order(rows)
    order = order[~mask[rows[order]]]
    check_size(len(order))
    values = pa.concat_arrays([p.values.cast(element) for p in parts])
    return listed(values, order, _counts(rows[order], n), mask, context.dtype)


def _reverse(args: Sequence[Vector], context: CallContext) -> Data:
    """A text, or the elements of an array, from the end."""
    if not is_array(context.dtype):
        return pc.utf8_reverse(args[0].data)
    items = elements(args[0].array(context.num_rows))
    ends = items.starts + items.sizes - 1
    positions = ends[items.rows] - items.order
    return listed(items.values, positions, items.sizes, items.nulls, context.dtype)


def _slice(args: Sequence[Vector], context: CallContext) -> Data:
    """``slice(array, start, length)``: from 1 or, negative, from the end."""
    n = context.num_rows
    items = elements(args[0].array(n))
    start, length = numbers(args[1], n), numbers(args[2], n)
    mask = dense_mask(args, n)
    if ((start == 0) & ~mask).any():
        raise ExecutionError("INVALID_PARAMETER_VALUE.START", "slice expects a start that is not 0.")
    if ((length < 0) & ~mask).any():
        raise ExecutionError("INVALID_PARAMETER_VALUE.LENGTH", "slice expects a length that is not negative.")
    begin = np.where(start > 0, start - 1, items.sizes + start)
    end = np.where((begin < 0) | mask, 0, begin + length)
    order = items.order
    selected = np.flatnonzero((order >= begin[items.rows]) & (order < end[items.rows]))
    return listed(items.values, selected, _counts(items.rows[selected], n), mask, context.dtype)


def _flatten(args: Sequence[Vector], context: CallContext) -> Data:
    """The elements of arrays in an array; NULL where one of them is NULL."""
    n = context.num_rows
    outer = elements(args[0].array(n))
    inner = elements(outer.values)
    mask = outer.nulls.copy()
    mask[outer.rows[inner.nulls]] = True
    rows = outer.rows[inner.rows]
    selected = np.flatnonzero(~mask[rows])
    return listed(inner.values, selected, _counts(rows[selected], n), mask, context.dtype)


def _join(args: Sequence[Vector], context: CallContext) -> Data:
    """The texts with a separator between them; NULLs are left out unless a third argument stands for them."""
    n = context.num_rows
    items = elements(args[0].array(n))
    values, mask = items.values, dense_mask(args, n)
    selected = np.flatnonzero(~mask[items.rows])
    if values.null_count and len(args) > 2:
        instead = args[2].array(n).take(pa.array(items.rows))
        values = pc.if_else(values.is_valid(), values, instead)
    selected = selected[np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)[selected]]
    lists = listed(values, selected, _counts(items.rows[selected], n), mask, pa.list_(t.STRING))
    separators = args[1].array(n)
    reserve_gather([separators], items.rows)
    return pc.binary_join(lists, separators)


def _repeat(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    count = np.maximum(numbers(args[1], n), 0)
    mask = dense_mask(args[1:], n)
    total = int(np.where(mask, 0, count).sum())
    reserve_rows(total, 16)
    check_size(total)
    rows = np.repeat(np.arange(n), np.where(mask, 0, count))
    return listed(args[0].array(n), rows, count, mask, context.dtype)


def _entries(args: Sequence[Vector], context: CallContext) -> Data:
    array = args[0].array(context.num_rows)
    pairs = pa.StructArray.from_arrays([array.keys, array.items], fields=list(context.dtype.value_type))
    items = elements(array, pairs)
    return list_array(items.values, items.sizes, items.nulls, context.dtype)


# --- types ----------------------------------------------------------------------------------------


def _fail(name: str, types: Sequence[pa.DataType]) -> PlanError:
    return PlanError(f"{name} cannot take {', '.join(map(t.spark_name, types))}")


def _orderable(dtype: pa.DataType) -> bool:
    return is_array(dtype) and dtype.value_type != t.NULL and can_order(dtype.value_type)


def _rule(
    name: str, result: Callable[[Sequence[pa.DataType]], pa.DataType], *tests: Callable[[pa.DataType], bool]
) -> Callable[[Sequence[pa.DataType]], pa.DataType]:
    def rule(types: Sequence[pa.DataType]) -> pa.DataType:
        if not all(tests[min(i, len(tests) - 1)](dtype) for i, dtype in enumerate(types)):
            raise _fail(name, types)
        return result(types)

    return rule


def _same(types: Sequence[pa.DataType]) -> pa.DataType:
    return types[0]


def _pair(
    name: str, element: Callable[[pa.DataType], pa.DataType | None], result: pa.DataType | None = None
) -> Callable[[Sequence[pa.DataType]], pa.DataType]:
    """Of an array and something that ``element`` finds one element's type of."""

    def rule(types: Sequence[pa.DataType]) -> pa.DataType:
        other = element(types[1])
        if (
            not _orderable(types[0])
            or other is None
            or t.spark_name(types[0].value_type) != t.spark_name(other)
        ):
            raise _fail(name, types)
        return types[0] if result is None else result

    return rule


def _of_array(dtype: pa.DataType) -> pa.DataType | None:
    return dtype.value_type if _orderable(dtype) else None


def _intersect_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The first array's type; an element can be NULL if it can in both."""
    field = _pair("array_intersect", _of_array)(types).value_field
    return pa.list_(field.with_nullable(field.nullable and types[1].value_field.nullable))


def _union_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The array's type that can hold a NULL, if one of both can."""
    first = _pair("array_union", _of_array)(types)
    return first if first.value_field.nullable else types[1]


def _itself(dtype: pa.DataType) -> pa.DataType:
    return dtype


def _concat_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not types or not is_array(types[0]):
        return concat_type(types)
    if any(not is_array(dtype) or dtype.value_type != types[0].value_type for dtype in types):
        raise _fail("concat", types)
    nullable = any(dtype.value_field.nullable for dtype in types)
    return pa.list_(pa.field("element", types[0].value_type, nullable))


def _coerce_concat(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return types if any(map(is_array, types)) else coerce_concat(types)


def _reversible(dtype: pa.DataType) -> bool:
    return is_array(dtype) or t.is_string(dtype)


def _entries_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not pa.types.is_map(types[0]):
        raise _fail("map_entries", types)
    pair = [pa.field("key", types[0].key_type, False), types[0].item_field.with_name("value")]
    return pa.list_(pa.field("element", pa.struct(pair), False))


def _whole(dtype: pa.DataType) -> bool:
    return bool(dtype == t.INT)


def _text_array(dtype: pa.DataType) -> bool:
    return is_array(dtype) and bool(dtype.value_type == t.STRING)


def _nested_array(dtype: pa.DataType) -> bool:
    return is_array(dtype) and is_array(dtype.value_type)


_ANY = frozenset(EvalMode)

register(
    Function(
        "sort_array",
        _sort,
        _rule("sort_array", _same, _orderable, lambda dtype: bool(dtype == t.BOOL)),
        catalyst=("SortArray",),
        arity=(1, 2),
        calls=CallForm(adds=(1, ", true")),
    ),
    *(
        Function(
            name,
            _extreme(largest),
            _rule(name, lambda types: types[0].value_type, _orderable),
            catalyst=(cls,),
            nullable="always",
        )
        for name, largest, cls in (("array_max", True, "ArrayMax"), ("array_min", False, "ArrayMin"))
    ),
    Function(
        "array_distinct", _distinct, _rule("array_distinct", _same, _orderable), catalyst=("ArrayDistinct",)
    ),
    Function("array_union", _union, _union_type, catalyst=("ArrayUnion",), arity=(2, 2), calls=TWO_COLUMNS),
    Function(
        "array_intersect",
        _common(True),
        _intersect_type,
        catalyst=("ArrayIntersect",),
        arity=(2, 2),
        calls=TWO_COLUMNS,
    ),
    Function(
        "array_except",
        _common(False),
        _pair("array_except", _of_array),
        catalyst=("ArrayExcept",),
        arity=(2, 2),
        calls=TWO_COLUMNS,
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
    ),
    Function(
        "array_position",
        _position,
        _pair("array_position", _itself, t.LONG),
        catalyst=("ArrayPosition",),
        arity=(2, 2),
        coerce=element_of,
    ),
    Function(
        "array_remove",
        _remove,
        _pair("array_remove", _itself),
        catalyst=("ArrayRemove",),
        arity=(2, 2),
        coerce=element_of,
    ),
    Function(
        "concat",
        _concat,
        _concat_type,
        catalyst=("Concat",),
        arity=(0, None),
        coerce=_coerce_concat,
        operator=Operator(spellings=("||",)),
        calls=ALL_COLUMNS,
    ),
    Function(
        "reverse",
        _reverse,
        _rule("reverse", _same, _reversible),
        catalyst=("Reverse",),
        coerce=lambda types: types if is_array(types[0]) else [t.STRING],
    ),
    Function(
        "slice",
        _slice,
        _rule("slice", _same, is_array, _whole, _whole),
        catalyst=("Slice",),
        arity=(3, 3),
        calls=THREE_COLUMNS,
        changes=(VersionChange("gives no element where start and length together pass 2147483647"),),
        raises=_ANY,
    ),
    Function(
        "flatten",
        _flatten,
        _rule("flatten", lambda types: types[0].value_type, _nested_array),
        catalyst=("Flatten",),
        nullable="elements",
    ),
    Function(
        "array_join",
        _join,
        _rule("array_join", lambda types: t.STRING, _text_array, t.is_string),
        catalyst=("ArrayJoin",),
        arity=(2, 3),
    ),
    Function(
        "array_repeat",
        _repeat,
        _rule("array_repeat", lambda types: pa.list_(types[0]), lambda dtype: dtype != t.NULL, _whole),
        catalyst=("ArrayRepeat",),
        arity=(2, 2),
        calls=TWO_COLUMNS,
        nullable="rest",
        evaluates=(1, 0),
    ),
    Function("map_entries", _entries, _entries_type, catalyst=("MapEntries",)),
)
