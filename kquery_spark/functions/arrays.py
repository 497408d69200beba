"""Arrays as wholes: sorting, sets, slices, joining, sequences.

Elements are compared by **codes**: the place of each value among the distinct ones in Spark's order (NaN last,
-0.0 as 0.0), so that every function is integer arithmetic over all elements of a batch at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions import civil
from kquery_spark.functions.registry import CallContext, EvalMode, Function, register
from kquery_spark.functions.strings import joint_mask, numbers
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector

Mask = npt.NDArray[np.bool_]
_MOST_ELEMENTS = 100_000_000


def is_array(dtype: pa.DataType) -> bool:
    """Whether the type is an array (maps are lists to Arrow)."""
    return bool(pa.types.is_list(dtype)) and not pa.types.is_map(dtype)


@dataclass(frozen=True)
class Elements:
    """The elements of all rows, one after the other: how many each row has, the row of each, and their values."""

    sizes: Int64s
    rows: Int64s
    values: pa.Array
    nulls: Mask

    @property
    def starts(self) -> Int64s:
        """Where the elements of each row begin."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def order(self) -> Int64s:
        """The place of each element in its row, from 0."""
        return np.arange(len(self.rows)) - np.repeat(self.starts, self.sizes)


def elements(array: pa.Array) -> Elements:
    """The elements of a list array, those behind NULL left out."""
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    sizes = np.diff(offsets)
    nulls = np.asarray(array.is_null().to_numpy(zero_copy_only=False), np.bool_)
    sizes = np.where(nulls, 0, sizes)
    starts = np.cumsum(sizes) - sizes
    places = np.repeat(offsets[:-1] - starts, sizes) + np.arange(int(sizes.sum()))
    values = array.values.take(pa.array(places))
    return Elements(sizes, np.repeat(np.arange(len(array)), sizes), values, nulls)


def listed(values: pa.Array, places: Int64s, sizes: Int64s, mask: Mask, dtype: pa.DataType) -> pa.Array:
    """A list array of the values at ``places``, ``sizes`` a row."""
    bounds = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(np.where(mask, 0, sizes), out=bounds[1:])
    if bounds[-1] >= 2**31:
        raise MemoryError("a batch of arrays grew past 2^31 elements")
    child = values.take(pa.array(places))
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), child, type=dtype, mask=pa.array(mask))


def codes(values: pa.Array) -> Int64s:
    """The rank of each value among the distinct ones in Spark's order; -1 for NULL."""
    dtype = values.type
    nulls = np.asarray(values.is_null().to_numpy(zero_copy_only=False), np.bool_)
    if t.is_fractional(dtype):
        plain = values.fill_null(0) if values.null_count else values
        _, ranks = np.unique(plain.to_numpy(zero_copy_only=False) + 0.0, return_inverse=True)
    else:
        if dtype == t.BOOL:
            values = values.cast(t.BYTE)
        encoded = values.dictionary_encode()
        order = np.asarray(pc.array_sort_indices(encoded.dictionary).to_numpy(), np.int64)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        at = encoded.indices.fill_null(0) if encoded.null_count else encoded.indices
        ranks = (
            place[np.asarray(at.to_numpy(zero_copy_only=False))]
            if len(order)
            else np.zeros(len(values), np.int64)
        )
    return np.where(nulls, -1, ranks.astype(np.int64))


def _mask(args: Sequence[Vector], length: int) -> Mask:
    mask = joint_mask(args, length)
    return np.zeros(length, np.bool_) if mask is None else np.asarray(mask, np.bool_)


def _both(args: Sequence[Vector], length: int) -> tuple[Elements, Elements, Int64s, Int64s]:
    """The elements of two arrays, with codes of their common values."""
    left, right = elements(args[0].array(length)), elements(args[1].array(length))
    if len({x.values.type for x in (left, right)}) > 1:
        right = Elements(right.sizes, right.rows, right.values.cast(left.values.type), right.nulls)
    found = codes(pa.concat_arrays([left.values, right.values]))
    return left, right, found[: len(left.rows)], found[len(left.rows) :]


def _first_of_each(rows: Int64s, found: Int64s) -> Int64s:
    """Places of the first element of each value of each row, in their order."""
    if not len(rows):
        return np.zeros(0, np.int64)
    width = int(found.max()) + 2
    _, first = np.unique(rows * width + found + 1, return_index=True)
    return np.sort(first)


def _counts(rows: Int64s, length: int) -> Int64s:
    return np.bincount(rows, minlength=length)[:length] if length else np.zeros(0, np.int64)


# --- order ----------------------------------------------------------------------------------------


def _sort(args: Sequence[Vector], context: CallContext) -> Data:
    """Ascending with NULLs first, or descending with NULLs last; equal values keep their order."""
    n = context.num_rows
    found = elements(args[0].array(n))
    ascending = args[1].data.as_py() if len(args) > 1 else True
    ranks = codes(found.values)
    order = np.lexsort((ranks if ascending else -ranks, found.rows))
    return listed(found.values, order, found.sizes, found.nulls, context.dtype)


def _extreme(largest: bool) -> Callable[[Sequence[Vector], CallContext], Data]:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        found = elements(args[0].array(n))
        ranks = codes(found.values)
        known = np.flatnonzero(ranks >= 0)
        key = -ranks[known] if largest else ranks[known]
        order = known[np.lexsort((key, found.rows[known]))]
        rows, first = np.unique(found.rows[order], return_index=True)
        place = np.full(n, -1, np.int64)
        place[rows] = order[first]
        return found.values.take(pa.array(np.maximum(place, 0), mask=place < 0))

    return run


# --- sets -----------------------------------------------------------------------------------------


def _distinct(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    found = elements(args[0].array(n))
    kept = _first_of_each(found.rows, codes(found.values))
    return listed(found.values, kept, _counts(found.rows[kept], n), found.nulls, context.dtype)


def _among(rows: Int64s, found: Int64s, other_rows: Int64s, other: Int64s) -> Mask:
    """Which elements are among the other array's of the same row (NULL among NULLs)."""
    width = int(max(found.max(initial=0), other.max(initial=0))) + 2
    return np.isin(rows * width + found + 1, other_rows * width + other + 1)


def _common(keep: bool) -> Callable[[Sequence[Vector], CallContext], Data]:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        left, right, a, b = _both(args, n)
        mask = _mask(args, n)
        first = _first_of_each(left.rows, a)
        first = first[~mask[left.rows[first]]]
        chosen = first[_among(left.rows[first], a[first], right.rows, b) == keep]
        return listed(left.values, chosen, _counts(left.rows[chosen], n), mask, context.dtype)

    return run


def _union(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    left, right, a, b = _both(args, n)
    rows, found = np.concatenate([left.rows, right.rows]), np.concatenate([a, b])
    mask = _mask(args, n)
    order = np.argsort(rows, kind="stable")
    order = order[~mask[rows[order]]]
    kept = order[_first_of_each(rows[order], found[order])]
    values = pa.concat_arrays([left.values, right.values.cast(left.values.type)])
    return listed(values, kept, _counts(rows[kept], n), mask, context.dtype)


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
    return pa.array(shared, mask=unknown | _mask(args, n))


def _against(args: Sequence[Vector], n: int) -> tuple[Elements, Mask]:
    """The elements of an array, and which of them equal the row's value."""
    found = elements(args[0].array(n))
    wanted = args[1].array(n)
    joint = codes(pa.concat_arrays([found.values, wanted.cast(found.values.type)]))
    mine, other = joint[: len(found.rows)], joint[len(found.rows) :]
    return found, (mine >= 0) & (mine == other[found.rows])


def _position(args: Sequence[Vector], context: CallContext) -> Data:
    """The first place of a value, from 1; 0 when it is not there."""
    n = context.num_rows
    found, equal = _against(args, n)
    place = np.zeros(n, np.int64)
    hits = np.flatnonzero(equal)[::-1]
    place[found.rows[hits]] = found.order[hits] + 1
    return pa.array(place, mask=_mask(args, n))


def _remove(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    found, equal = _against(args, n)
    mask = _mask(args, n)
    kept = np.flatnonzero(~equal & ~mask[found.rows])
    return listed(found.values, kept, _counts(found.rows[kept], n), mask, context.dtype)


# --- parts and wholes -----------------------------------------------------------------------------


def _slice(args: Sequence[Vector], context: CallContext) -> Data:
    """``slice(array, start, length)``: from 1 or, negative, from the end."""
    n = context.num_rows
    found = elements(args[0].array(n))
    start, length = numbers(args[1], n), numbers(args[2], n)
    mask = _mask(args, n)
    if ((start == 0) & ~mask).any():
        raise ExecutionError("INVALID_PARAMETER_VALUE.START", "slice expects a start that is not 0.")
    if ((length < 0) & ~mask).any():
        raise ExecutionError("INVALID_PARAMETER_VALUE.LENGTH", "slice expects a length that is not negative.")
    begin = np.where(start > 0, start - 1, found.sizes + start)
    end = np.where((begin < 0) | mask, 0, begin + length)
    order = found.order
    kept = np.flatnonzero((order >= begin[found.rows]) & (order < end[found.rows]))
    return listed(found.values, kept, _counts(found.rows[kept], n), mask, context.dtype)


def _flatten(args: Sequence[Vector], context: CallContext) -> Data:
    """The elements of arrays in an array; NULL where one of them is NULL."""
    n = context.num_rows
    outer = elements(args[0].array(n))
    inner = elements(outer.values)
    mask = outer.nulls.copy()
    mask[outer.rows[inner.nulls]] = True
    rows = outer.rows[inner.rows]
    kept = np.flatnonzero(~mask[rows])
    return listed(inner.values, kept, _counts(rows[kept], n), mask, context.dtype)


def _join(args: Sequence[Vector], context: CallContext) -> Data:
    """The texts with a separator between them; NULLs are left out unless a third argument stands for them."""
    n = context.num_rows
    found = elements(args[0].array(n))
    values, mask = found.values, _mask(args, n)
    kept = np.flatnonzero(~mask[found.rows])
    if values.null_count and len(args) > 2:
        instead = args[2].array(n).take(pa.array(found.rows))
        values = pc.if_else(values.is_valid(), values, instead)
    kept = kept[np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)[kept]]
    lists = listed(values, kept, _counts(found.rows[kept], n), mask, pa.list_(t.STRING))
    return pc.binary_join(lists, args[1].array(n))


def _repeat(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    count = np.maximum(numbers(args[1], n), 0)
    mask = _mask(args[1:], n)
    _check_size(int(np.where(mask, 0, count).sum()))
    places = np.repeat(np.arange(n), np.where(mask, 0, count))
    return listed(args[0].array(n), places, count, mask, context.dtype)


def _entries(args: Sequence[Vector], context: CallContext) -> Data:
    array = args[0].array(context.num_rows)
    pairs = pa.StructArray.from_arrays([array.keys, array.items], fields=list(context.dtype.value_type))
    nulls = np.asarray(array.is_null().to_numpy(zero_copy_only=False), np.bool_)
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    sizes = np.where(nulls, 0, np.diff(offsets))
    starts = np.cumsum(sizes) - sizes
    places = np.repeat(offsets[:-1] - starts, sizes) + np.arange(int(sizes.sum()))
    return listed(pairs, places, sizes, nulls, context.dtype)


# --- sequences ------------------------------------------------------------------------------------


def _check_size(size: int) -> None:
    if size > _MOST_ELEMENTS:
        raise Unsupported(f"Arrays of more than {_MOST_ELEMENTS} elements in a batch are not supported.")


def _sequence(args: Sequence[Vector], context: CallContext) -> Data:
    """Numbers or days from a start to a stop; the step is 1 or -1 unless it is given."""
    n = context.num_rows
    mask = _mask(args, n)
    dates = context.dtype.value_type == t.DATE
    start, stop = (_plain(a, n) for a in args[:2])
    if len(args) > 2:
        step = _plain(args[2], n)
        if dates:
            if (step % civil.DAY != 0).any():
                raise Unsupported("Sequences of dates by parts of a day are not supported.")
            step = step // civil.DAY
    else:
        step = np.where(start <= stop, 1, -1)
    legal = np.where(step == 0, start == stop, (step > 0) == (start <= stop)) | (start == stop)
    if (~legal & ~mask).any():
        raise ExecutionError("IllegalArgumentException", "Illegal sequence boundaries.")
    if (np.abs(start.astype(np.float64)) + np.abs(stop.astype(np.float64)) > 2.0**62).any():
        raise Unsupported("Sequences of numbers near the end of bigint are not supported.")
    sizes = np.where(mask, 0, (stop - start) // np.where(step == 0, 1, step) + 1)
    _check_size(int(sizes.sum()))
    rows = np.repeat(np.arange(n), sizes)
    order = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    values = start[rows] + order * step[rows]
    dtype = context.dtype.value_type
    child = pa.array(values.astype(np.int32)).view(t.DATE) if dates else pa.array(values).cast(dtype)
    return listed(child, np.arange(len(values)), sizes, mask, context.dtype)


def _plain(vector: Vector, length: int) -> Int64s:
    array = vector.array(length)
    if array.type == t.DATE:
        array = array.view(t.INT)
    elif pa.types.is_duration(array.type):
        array = array.view(t.LONG)
    return numbers(Vector(array.type, array), length)


# --- types ----------------------------------------------------------------------------------------


def _fail(name: str, types: Sequence[pa.DataType]) -> PlanError:
    return PlanError(f"{name} cannot take {', '.join(map(t.spark_name, types))}")


def _flat_array(name: str, fractional: bool = True) -> Callable[[pa.DataType], bool]:
    def test(dtype: pa.DataType) -> bool:
        if not is_array(dtype) or t.is_nested(dtype.value_type) or dtype.value_type == t.NULL:
            return False
        return fractional or not t.is_fractional(dtype.value_type)

    return test


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


def _of_two(name: str, result: pa.DataType | None = None) -> Callable[[Sequence[pa.DataType]], pa.DataType]:
    # Sets of doubles are left out: whether -0.0 is 0.0 differs between Spark's set functions.
    test = _flat_array(name, fractional=False)

    def rule(types: Sequence[pa.DataType]) -> pa.DataType:
        if not all(map(test, types)) or types[0].value_type != types[1].value_type:
            raise _fail(name, types)
        return types[0] if result is None else result

    return rule


def _with_value(
    name: str, result: pa.DataType | None = None
) -> Callable[[Sequence[pa.DataType]], pa.DataType]:
    test = _flat_array(name, fractional=False)

    def rule(types: Sequence[pa.DataType]) -> pa.DataType:
        if not test(types[0]) or types[0].value_type != types[1]:
            raise _fail(name, types)
        return types[0] if result is None else result

    return rule


def _sequence_type(types: Sequence[pa.DataType]) -> pa.DataType:
    first = types[0]
    if types[1] != first or not (t.is_integral(first) or first == t.DATE):
        raise _fail("sequence", types)
    if len(types) > 2 and types[2] != (t.DAY_TIME if first == t.DATE else first):
        raise _fail("sequence", types)
    return pa.list_(pa.field("element", first, False))


def _entries_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not pa.types.is_map(types[0]):
        raise _fail("map_entries", types)
    pair = [pa.field("key", types[0].key_type, False), pa.field("value", types[0].item_type)]
    return pa.list_(pa.field("element", pa.struct(pair), False))


def _widest(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    whole = [x for x in types if t.is_integral(x)]
    widest = max(whole, key=lambda x: x.bit_width) if whole and len(whole) == len(types) else None
    return [widest] * len(types) if widest is not None else types


def _value_of(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    """A whole number becomes one of the array's kind where that is wider."""
    element = types[0].value_type if is_array(types[0]) else types[0]
    widens = t.is_integral(element) and t.is_integral(types[1]) and types[1].bit_width < element.bit_width
    return [types[0], element if widens else types[1]]


_FLAT = _flat_array("")
_SAFE = _flat_array("", fractional=False)


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
        _rule("sort_array", _same, _FLAT, lambda dtype: bool(dtype == t.BOOL)),
        catalyst=("SortArray",),
        arity=(1, 2),
    ),
    *(
        Function(
            name,
            _extreme(largest),
            _rule(name, lambda types: types[0].value_type, _FLAT),
            catalyst=(cls,),
            nullable="always",
        )
        for name, largest, cls in (("array_max", True, "ArrayMax"), ("array_min", False, "ArrayMin"))
    ),
    Function("array_distinct", _distinct, _rule("array_distinct", _same, _SAFE), catalyst=("ArrayDistinct",)),
    Function("array_union", _union, _of_two("array_union"), catalyst=("ArrayUnion",), arity=(2, 2)),
    Function(
        "array_intersect",
        _common(True),
        _of_two("array_intersect"),
        catalyst=("ArrayIntersect",),
        arity=(2, 2),
    ),
    Function(
        "array_except", _common(False), _of_two("array_except"), catalyst=("ArrayExcept",), arity=(2, 2)
    ),
    Function(
        "arrays_overlap",
        _overlap,
        _of_two("arrays_overlap", t.BOOL),
        catalyst=("ArraysOverlap",),
        arity=(2, 2),
        nullable="always",
    ),
    Function(
        "array_position",
        _position,
        _with_value("array_position", t.LONG),
        catalyst=("ArrayPosition",),
        arity=(2, 2),
        coerce=_value_of,
    ),
    Function(
        "array_remove",
        _remove,
        _with_value("array_remove"),
        catalyst=("ArrayRemove",),
        arity=(2, 2),
        coerce=_value_of,
    ),
    Function(
        "slice",
        _slice,
        _rule("slice", _same, is_array, _whole, _whole),
        catalyst=("Slice",),
        arity=(3, 3),
        raises=_ANY,
    ),
    Function(
        "flatten",
        _flatten,
        _rule("flatten", lambda types: types[0].value_type, _nested_array),
        catalyst=("Flatten",),
        nullable="always",
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
        nullable="rest",
    ),
    Function("map_entries", _entries, _entries_type, catalyst=("MapEntries",)),
    # the step of dates is an interval of days
    Function(
        "sequence",
        _sequence,
        _sequence_type,
        catalyst=("Sequence",),
        arity=(2, 3),
        raises=_ANY,
        coerce=_widest,
    ),
)
