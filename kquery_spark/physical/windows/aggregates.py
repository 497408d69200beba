"""Aggregate functions over windows.

The method depends on the frame and on the aggregate, from the fastest to the most general:

- A frame that is the whole partition: group by partition, and repeat the result on each row (``whole_partition``).
- Counts, and exact sums: differences of prefix sums.
- Sums of floats, MIN and MAX: folds over ranges (``sliding``).
- Other aggregates with states of fixed size: one state per row, merged over ranges (``merge_ranges``).
- MIN, MAX, max_by and min_by with strings or nested values: the number of the row with the result (``picking``).
- Aggregates whose state is a list: every frame is expanded to its rows (``_RangeByRange``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from kquery_spark.cached_property import cached_property
from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.expr import WindowCall
from kquery_spark.functions.aggregate_registry import aggregate_function
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.math.decimal_kernels import out_of_range
from kquery_spark.functions.registry import CallContext, EvalMode
from kquery_spark.physical.aggregates import Accumulator, accumulator, reduce
from kquery_spark.physical.aggregates.moments import CentralMoments
from kquery_spark.physical.grouping.groups import Groups
from kquery_spark.physical.grouping.key_values import as_integers
from kquery_spark.physical.windows.picking import picked_values
from kquery_spark.physical.windows.results import ComputedResult, WindowResult, gathered
from kquery_spark.physical.windows.segments import Segments
from kquery_spark.physical.windows.sliding import (
    are_short,
    fold_ranges,
    frame_pairs,
    merge_ranges,
    prefix_counts,
    sums_in_order,
)
from kquery_spark.types import names as t
from kquery_spark.types.batch import concat_arrays
from kquery_spark.types.sizes import has_offsets, reserve_rows, row_bytes
from kquery_spark.types.vector import Data, Int64s, Vector, decimal_words, slots, true_flags, validity

_INT64 = np.iinfo(np.int64)
_EXACT_DOUBLES = 2**53


def whole_partition(call: WindowCall, args: Sequence[Vector], segments: Segments) -> WindowResult:
    """Return the aggregate of each partition, on each row of the partition."""
    if (
        segments.count == 1
        and args
        and t.is_fractional(args[0].dtype)
        and aggregate_function(call.function).adds
    ):
        # A grouped sum adds floats in row order, but the sum of a single group does not, so use the frames for it.
        return framed(call, args, segments.start, segments.end)
    _check_sums(call, args, segments.start, segments.end)
    accumulate, context = accumulator_of(call), context_of(call, segments.num_rows)
    states = accumulate.update(args, Groups(segments.ids, segments.count, segments.firsts), context)
    done = _finish(accumulate, states, context_of(call, segments.count))
    return gathered(Vector(call.dtype, done), segments.ids)


def framed(call: WindowCall, args: Sequence[Vector], low: Int64s, high: Int64s) -> WindowResult:
    """Return, for each row, the aggregate of the rows ``low:high``."""
    types = state_types(call)
    if any(pa.types.is_list(x) for x in types):
        result = _RangeByRange(call, args, low, high)
        return result if has_offsets(call.dtype) else ComputedResult(result.array())
    picks = picked_values(call, args, low, high) if any(map(has_offsets, types)) else None
    if picks is not None:
        return picks
    return ComputedResult(finished(call, framed_states(call, args, low, high), len(low)))


def state_types(call: WindowCall) -> tuple[pa.DataType, ...]:
    """Return the types of the aggregate's states."""
    return accumulator_of(call).state_types([a.dtype for a in call.args], call.dtype)


def framed_states(call: WindowCall, args: Sequence[Vector], low: Int64s, high: Int64s) -> list[Vector]:
    """Return, for each row, the states of the aggregate over the rows ``low:high``. Not for states that are lists."""
    n = len(low)
    entry = aggregate_function(call.function)
    if entry.counts:
        return [Vector(t.LONG, _counts(entry.counts_true, args, low, high, n))]
    states: list[Vector] | None = None
    if entry.adds:
        state = accumulator_of(call).state_types([args[0].dtype], call.dtype)[0]
        states = _sums(args[0].filled(n), state, low, high)
        if states is None or args[0].dtype == t.YEAR_MONTH:
            _check_sums(call, args, low, high)
    elif entry.extreme:
        values = args[0].filled(n)
        if not reduce.has_negative_zero(values):
            states = [_extremes(values, low, high, entry.extreme == "greatest")]
    return _by_merging(call, args, low, high) if states is None else states


def _check_sums(call: WindowCall, args: Sequence[Vector], low: Int64s, high: Int64s) -> None:
    """Raise Unsupported if a sum could overflow in row order although the total is in range.

    In such a case, Spark returns NULL or an error, but the engine adds rows in another order. The check is conservative: it
    compares the sum of the magnitudes of a frame with the limit of the type.
    """
    entry = aggregate_function(call.function)
    if not entry.adds or not len(low):
        return
    vector = args[0].filled(len(low))
    if pa.types.is_decimal(vector.dtype):
        limit = 10.0 ** accumulator_of(call).state_types([vector.dtype], call.dtype)[0].precision
        if vector.is_narrow:
            return  # the sum would need 10 ** 19 rows to overflow
        sizes = np.abs(decimal_words(vector.data)[:, 1].astype(np.float64)) * 2.0**64 + 2.0**64
    elif t.is_interval(vector.dtype) or (
        not entry.adds_as_doubles and vector.dtype == t.LONG and call.mode is not EvalMode.LEGACY
    ):
        limit = 2.0 ** (t.INTERVAL_STORAGE.get(vector.dtype, t.LONG).bit_width - 1)
        sizes = np.abs(slots(vector.data).astype(np.float64))
    else:
        return
    valid = validity(vector.data)
    running = np.concatenate(([0.0], np.cumsum(sizes if valid is None else np.where(valid, sizes, 0.0))))
    if (running[high] - running[low]).max() > 0.999 * limit:
        raise Unsupported(
            "sums over windows of values so large that the order of additions decides on overflow"
        )


def finished(call: WindowCall, states: Sequence[Vector], n: int) -> pa.Array:
    """Return the results of ``n`` rows of states."""
    return Vector(call.dtype, _finish(accumulator_of(call), states, context_of(call, n))).physical(n)


def _finish(accumulate: Accumulator, states: Sequence[Vector], context: CallContext) -> Data:
    try:
        return accumulate.finish(states, context)
    except ExecutionError as error:
        if error.error_class == "ARITHMETIC_OVERFLOW" and t.is_decimal(context.dtype):
            raise out_of_range(context) from None  # Spark's windows raise another error than its aggregates
        raise


def accumulator_of(call: WindowCall) -> Accumulator:
    """Return the accumulator of the aggregate."""
    return accumulator(aggregate_function(call.function).accumulator)


def context_of(call: WindowCall, n: int) -> CallContext:
    """Return the context of the accumulator's phases for ``n`` rows."""
    return CallContext(call.dtype, call.mode, num_rows=n)


def _counts(counts_true: bool, args: Sequence[Vector], low: Int64s, high: Int64s, n: int) -> Data:
    flags = np.ones(n, np.bool_)
    for arg in args:
        data = arg.physical(n)
        if counts_true:
            flags = true_flags(data)
        elif data.null_count:
            flags = flags & pc.is_valid(data).to_numpy(zero_copy_only=False)
    before = prefix_counts(flags)
    return pa.array(before[high] - before[low])


def _sums(vector: Vector, state: pa.DataType, low: Int64s, high: Int64s) -> list[Vector] | None:
    """Return the states of sum and avg, whose sum has the type ``state``; None if values are too large for the fast path."""
    valid = validity(vector.data)
    flags = np.ones(len(low), np.bool_) if valid is None else valid
    before = prefix_counts(flags)
    counts = Vector(t.LONG, pa.array(before[high] - before[low]))
    if t.is_fractional(vector.dtype):
        values = vector.data.cast(t.DOUBLE).fill_null(0.0).to_numpy(zero_copy_only=False)
        return [Vector(state, pa.array(sums_in_order(values, low, high))), counts]
    integers = as_integers(vector)
    if integers is None:
        return None
    values = np.asarray(dk.as_int64(integers))
    values = values if valid is None else np.where(valid, values, 0)
    bound = max(abs(int(values.min(initial=0))), abs(int(values.max(initial=0))))
    if bound * len(values) <= (_EXACT_DOUBLES if state == t.DOUBLE else _INT64.max):
        running = prefix_counts(values)  # exact integers, so their differences are exact as well
        sums = running[high] - running[low]
    elif state == t.DOUBLE:
        sums = sums_in_order(values.astype(np.float64), low, high)
    else:
        return None
    return [Vector(state, pa.array(sums.astype(np.float64) if state == t.DOUBLE else sums)), counts]


def _extremes(vector: Vector, low: Int64s, high: Int64s, largest: bool) -> Vector:
    valid = validity(vector.data)
    ordered, values = reduce.ordered_integers(vector), None
    if ordered is None:
        ordered, values = reduce.ranks(vector)
    # The values are folded as integers with the same order. NULLs become the neutral value, which no range prefers. A range
    # without values (equal prefix counts) has the result NULL.
    neutral = _INT64.min if largest else _INT64.max
    flags = np.ones(len(ordered), np.bool_) if valid is None else valid
    rows = ordered if valid is None else np.where(valid, ordered, neutral)
    best = fold_ranges(rows, low, high, np.maximum if largest else np.minimum, neutral)
    before = prefix_counts(flags)
    return Vector(vector.dtype, reduce.values_of(vector, best, before[high] == before[low], values))


def _by_merging(call: WindowCall, args: Sequence[Vector], low: Int64s, high: Int64s) -> list[Vector]:
    """Return the states of any other aggregate by merging the states of single rows.

    For moments over short frames, values are added one by one, because the order decides the last digits of the result.
    """
    n, accumulate = len(low), accumulator_of(call)
    arrays = [a.filled(n) if not a.is_scalar else a for a in args]
    if isinstance(accumulate, CentralMoments) and are_short(low, high):
        return accumulate.frame_states(args[0].filled(n), low, high)
    rows = np.arange(n, dtype=np.int64)
    context = context_of(call, n)
    states = accumulate.update(arrays, Groups(rows, n, rows), context)
    empty = [Vector(a.dtype, pa.array([], a.dtype)) for a in args]
    nothing = accumulate.update(
        empty, Groups(rows[:0], 1, np.zeros(1, np.int64)), CallContext(call.dtype, call.mode)
    )
    return merge_ranges(accumulate, states, nothing, low, high, context)


class _RangeByRange(WindowResult):
    """The result of an aggregate whose states are lists. It expands some frames at a time to their rows."""

    def __init__(self, call: WindowCall, args: Sequence[Vector], low: Int64s, high: Int64s) -> None:
        self._call = call
        self._args = args
        self._low = low
        self._high = high

    @override
    def sliced(self, start: int, length: int) -> WindowResult:
        end = start + length
        return _RangeByRange(self._call, self._args, self._low[start:end], self._high[start:end])

    @override
    def array(self) -> pa.Array:
        call, accumulate = self._call, accumulator_of(self._call)
        done = []
        for start, stop, owner, member in frame_pairs(self._low, self._high):
            index = pa.array(member)
            here = [a if a.is_scalar else Vector(a.dtype, a.data.take(index)) for a in self._args]
            groups = Groups(owner, stop - start, np.zeros(stop - start, np.int64))
            states = accumulate.update(here, groups, context_of(call, len(owner)))
            done.append(_finish(accumulate, states, context_of(call, stop - start)))
            reserve_rows(sum(one.nbytes for one in done))
        return concat_arrays(call.dtype, done)

    @property
    @override
    def largest_row_bytes(self) -> int:
        return int(self._frame_bytes.max(initial=0))

    @override
    def row_bytes(self) -> Int64s:
        return self._frame_bytes

    @cached_property
    def _frame_bytes(self) -> Int64s:
        """The bytes of all rows of each frame. The result of a frame can be smaller, for example a set."""
        total = np.zeros(len(self._low), np.int64)
        for arg in self._args:
            if arg.is_scalar:
                total += (self._high - self._low) * int(row_bytes(arg.array(1))[0])
            else:
                ends = prefix_counts(_plain_row_bytes(arg))
                total += ends[self._high] - ends[self._low]
        return total


def _plain_row_bytes(vector: Vector) -> Int64s:
    """Return the bytes that each row of a column takes once dictionaries are decoded."""
    if not vector.is_dictionary:
        return row_bytes(vector.data)
    sizes = np.append(row_bytes(vector.data.dictionary), 0)
    indices: Int64s = vector.data.indices.fill_null(len(sizes) - 1).to_numpy(zero_copy_only=False)
    return sizes[indices]
