"""Functions of whole arrays: sort, concatenate, reverse, slice, flatten, join, repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import ALL_COLUMNS, THREE_COLUMNS, TWO_COLUMNS, CallForm
from kquery_spark.functions.core.arguments import dense_mask, numbers
from kquery_spark.functions.core.conditional import common_argument_type
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    COLUMN,
    CallContext,
    Function,
    Nullability,
    Operator,
    TypeRule,
    VersionChange,
    first_argument_type,
    register,
)
from kquery_spark.functions.strings.joining import coerce_concat, concat, concat_type
from kquery_spark.kernels import utf8_string
from kquery_spark.kernels.elements import (
    cast_nullability,
    check_size,
    elements,
    gather_lists,
    is_array,
    list_array,
    value_ranks,
)
from kquery_spark.kernels.integer_order import lexicographic_order, stable_order
from kquery_spark.kernels.ordered_bytes import can_order
from kquery_spark.types import names as t
from kquery_spark.types.coercion import common_type
from kquery_spark.types.sizes import reserve_gather, reserve_rows
from kquery_spark.types.vector import Data, Vector

# --- order ----------------------------------------------------------------------------------------


def _check_constant_order(values: Sequence[object]) -> None:
    if len(values) > 1 and values[1] is COLUMN:
        raise Unsupported("sort_array in an order that is not a constant is not supported")


def _sort(args: Sequence[Vector], context: CallContext) -> Data:
    """Sort in ascending order with NULLs first, or in descending order with NULLs last; the sort is stable.

    The order must be a constant; if it is NULL, the result is NULL. Spark sorts numbers without NULLs by
    ``java.util.Arrays.sort``, in which -0.0 comes before 0.0.
    """
    n = context.num_rows
    ascending = args[1].data.as_py() if len(args) > 1 else True
    if ascending is None:
        return pa.nulls(n, context.dtype)
    items = elements(args[0].array(n))
    ranks = value_ranks(items.values)
    element = args[0].dtype.value_field
    if ascending and t.is_fractional(element.type) and not items.values.null_count:
        reals = items.values.to_numpy(zero_copy_only=False)
        zeros, negative = reals == 0, np.signbit(reals)
        if not element.nullable:
            ranks = 2 * ranks + ~(zeros & negative)
        elif len(np.intersect1d(items.rows[zeros & negative], items.rows[zeros & ~negative])):
            raise Unsupported(
                "sort_array of 0.0 and -0.0 where it is not known whether an element can be NULL"
            )
    order = lexicographic_order([items.rows, ranks if ascending else -ranks])
    return gather_lists(items.values, order, items.sizes, items.nulls, context.dtype)


def _extreme(largest: bool) -> Callable[[Sequence[Vector], CallContext], Data]:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        items = elements(args[0].array(n))
        ranks = value_ranks(items.values)
        known = np.flatnonzero(ranks >= 0)
        key = -ranks[known] if largest else ranks[known]
        order = known.take(lexicographic_order([items.rows[known], key]))
        rows, first = np.unique(items.rows[order], return_index=True)
        positions = np.full(n, -1, np.int64)
        positions[rows] = order[first]
        return items.values.take(pa.array(np.maximum(positions, 0), mask=positions < 0))

    return run


# --- parts and wholes -----------------------------------------------------------------------------


def _concat(args: Sequence[Vector], context: CallContext) -> Data:
    """Concatenate arrays; NULL if one of them is NULL."""
    if not is_array(context.dtype):
        return concat(args, context)
    n, element = context.num_rows, context.dtype.value_type
    mask = dense_mask(args, n)
    parts = [elements(a.array(n)) for a in args]
    rows = np.concatenate([p.rows for p in parts])
    order = stable_order(rows)
    order = order[~mask[rows[order]]]
    check_size(len(order))
    values = pa.concat_arrays([cast_nullability(p.values, element) for p in parts])
    return gather_lists(values, order, np.bincount(rows[order], minlength=n), mask, context.dtype)


def _reverse(args: Sequence[Vector], context: CallContext) -> Data:
    """Reverse a string, or the elements of an array."""
    if not is_array(context.dtype):
        return pc.utf8_reverse(args[0].data)
    items = elements(args[0].array(context.num_rows))
    ends = items.starts + items.sizes - 1
    positions = ends[items.rows] - items.order
    return gather_lists(items.values, positions, items.sizes, items.nulls, context.dtype)


def _slice(args: Sequence[Vector], context: CallContext) -> Data:
    """``slice(array, start, length)``; the start counts from 1, or from the end if it is negative."""
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
    return gather_lists(
        items.values, selected, np.bincount(items.rows[selected], minlength=n), mask, context.dtype
    )


def _flatten(args: Sequence[Vector], context: CallContext) -> Data:
    """Concatenate the arrays in an array; NULL if one of them is NULL."""
    n = context.num_rows
    outer = elements(args[0].array(n))
    inner = elements(outer.values)
    mask = outer.nulls.copy()
    mask[outer.rows[inner.nulls]] = True
    rows = outer.rows[inner.rows]
    selected = np.flatnonzero(~mask[rows])
    return gather_lists(inner.values, selected, np.bincount(rows[selected], minlength=n), mask, context.dtype)


def _join(args: Sequence[Vector], context: CallContext) -> Data:
    """Join strings with a separator; NULLs are omitted unless the third argument replaces them."""
    n = context.num_rows
    items = elements(args[0].array(n))
    values, mask = items.values, dense_mask(args, n)
    selected = np.flatnonzero(~mask[items.rows])
    if values.null_count and len(args) > 2:
        instead = args[2].array(n).take(pa.array(items.rows))
        values = pc.if_else(values.is_valid(), values, instead)
    selected = selected[np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)[selected]]
    lists = gather_lists(
        values, selected, np.bincount(items.rows[selected], minlength=n), mask, pa.list_(t.STRING)
    )
    separators = args[1].array(n)
    reserve_gather([separators], items.rows)
    return pc.binary_join(lists, separators)


def _repeat(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    count = np.maximum(numbers(args[1], n), 0)
    mask = dense_mask(args[1:], n)
    total = int(np.where(mask, 0, count).sum())
    reserve_rows(total, 16, check=lambda: check_size(total))
    rows = np.repeat(np.arange(n), np.where(mask, 0, count))
    return gather_lists(args[0].array(n), rows, count, mask, context.dtype)


def _entries(args: Sequence[Vector], context: CallContext) -> Data:
    array = args[0].array(context.num_rows)
    fields = list(context.dtype.value_type)
    parts = [
        cast_nullability(part, field.type)
        for part, field in zip((array.keys, array.items), fields, strict=True)
    ]
    pairs = pa.StructArray.from_arrays(parts, fields=fields)
    items = elements(array, pairs)
    return list_array(items.values, items.sizes, items.nulls, context.dtype)


# --- types ----------------------------------------------------------------------------------------


def wrong_types(name: str, types: Sequence[pa.DataType]) -> PlanError:
    """The error for a call with arguments of types that the function does not accept."""
    return PlanError(f"{name} cannot take {', '.join(map(t.spark_name, types))}")


def is_orderable(dtype: pa.DataType) -> bool:
    """Return whether the type is an array of elements that Spark can compare."""
    return is_array(dtype) and dtype.value_type != t.NULL and can_order(dtype.value_type)


def array_rule(name: str, result: TypeRule, *tests: Callable[[pa.DataType], bool]) -> TypeRule:
    """A type rule that returns ``result`` if each argument passes its test; the last test repeats."""

    def rule(types: Sequence[pa.DataType]) -> pa.DataType:
        if not all(tests[min(i, len(tests) - 1)](dtype) for i, dtype in enumerate(types)):
            raise wrong_types(name, types)
        return result(types)

    return rule


def _concat_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not types or not is_array(types[0]):
        return concat_type(types)
    if not all(map(is_array, types)) or len(set(map(t.spark_name, types))) > 1:
        raise wrong_types("concat", types)
    return common_argument_type(types)


def _coerce_concat(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    """Cast arrays to their common type, if there is one; without arrays, all arguments are strings or all are binary."""
    if not any(map(is_array, types)):
        return coerce_concat(types)
    if len(set(map(t.spark_name, types))) == 1:
        return types
    common = reduce(lambda a, b: None if a is None or b is None else common_type(a, b), types)
    return types if common is None else [common] * len(types)


def _reversible(dtype: pa.DataType) -> bool:
    return is_array(dtype) or t.is_string(dtype)


def _entries_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not pa.types.is_map(types[0]):
        raise wrong_types("map_entries", types)
    pair = [pa.field("key", types[0].key_type, False), types[0].item_field.with_name("value")]
    return pa.list_(pa.field("element", pa.struct(pair), False))


def _is_int(dtype: pa.DataType) -> bool:
    return bool(dtype == t.INT)


def _text_array(dtype: pa.DataType) -> bool:
    return is_array(dtype) and bool(dtype.value_type == t.STRING)


def _nested_array(dtype: pa.DataType) -> bool:
    return is_array(dtype) and is_array(dtype.value_type)


register(
    Function(
        "sort_array",
        _sort,
        array_rule("sort_array", first_argument_type, is_orderable, lambda dtype: bool(dtype == t.BOOL)),
        catalyst=("SortArray",),
        arity=(1, 2),
        calls=CallForm(adds=(1, ", true")),
        check_values=_check_constant_order,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    *(
        Function(
            name,
            _extreme(largest),
            array_rule(name, lambda types: types[0].value_type, is_orderable),
            catalyst=(cls,),
            nullable=Nullability.OTHER_REASONS,
            invalid_utf8=InvalidUtf8.BYTES,
        )
        for name, largest, cls in (("array_max", True, "ArrayMax"), ("array_min", False, "ArrayMin"))
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
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "reverse",
        _reverse,
        array_rule("reverse", first_argument_type, _reversible),
        catalyst=("Reverse",),
        coerce=lambda types: types if is_array(types[0]) else [t.STRING],
        invalid_utf8=utf8_string.reverse,
    ),
    Function(
        "slice",
        _slice,
        array_rule("slice", first_argument_type, is_array, _is_int, _is_int),
        catalyst=("Slice",),
        arity=(3, 3),
        calls=THREE_COLUMNS,
        changes=(VersionChange("gives no element where start and length together pass 2147483647"),),
        raises=ALWAYS_RAISES,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "flatten",
        _flatten,
        array_rule("flatten", lambda types: types[0].value_type, _nested_array),
        catalyst=("Flatten",),
        nullable=Nullability.ARGUMENT_OR_ELEMENT,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "array_join",
        _join,
        array_rule("array_join", lambda types: t.STRING, _text_array, t.is_string),
        catalyst=("ArrayJoin",),
        arity=(2, 3),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "array_repeat",
        _repeat,
        array_rule("array_repeat", lambda types: pa.list_(types[0]), lambda dtype: dtype != t.NULL, _is_int),
        catalyst=("ArrayRepeat",),
        arity=(2, 2),
        calls=TWO_COLUMNS,
        nullable=Nullability.ALL_BUT_FIRST,
        evaluates=(1, 0),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "map_entries", _entries, _entries_type, catalyst=("MapEntries",), invalid_utf8=InvalidUtf8.BYTES
    ),
)
