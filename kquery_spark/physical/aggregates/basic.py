"""The accumulators of count, sum, avg, min and max."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.math.overflow import as_intervals, overflow
from kquery_spark.functions.registry import CallContext, EvalMode
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.aggregates.accumulator import Accumulator, Reduction, register_accumulator
from kquery_spark.physical.grouping.groups import Groups
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector, decimal_words, slots, validity


class Count(Accumulator):
    """Counts the rows in which no argument is NULL; without arguments, all rows."""

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (t.LONG,)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        given = [a.physical(context.num_rows) for a in args if a.null_count]
        valid = [mask for mask in map(validity, given) if mask is not None]
        if valid:
            rows = np.flatnonzero(np.logical_and.reduce(valid))
            counts = np.bincount(groups.ids.take(rows), minlength=groups.count)
        else:
            counts = groups.sizes
        return [Vector(t.LONG, pa.array(counts, t.LONG))]

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        values = np.asarray(dk.as_int64(states[0].data))
        return [Vector(t.LONG, reduce.sum_int64(values, groups.compact_ids, groups.count))]


def sum_state(dtype: pa.DataType) -> pa.DataType:
    """Return the type of the state of a sum: double for floats, otherwise decimal(38) with the scale of the input."""
    if t.is_fractional(dtype):
        return t.DOUBLE
    return pa.decimal128(38, dtype.scale if t.is_decimal(dtype) else 0)


def _grouped_sum(vector: Vector, groups: Groups) -> Vector:
    state = sum_state(vector.dtype)
    if state == t.DOUBLE:
        return Vector(state, pa.array(reduce.sum_float(vector.data, groups)))
    if t.is_interval(vector.dtype):
        vector = Vector(pa.decimal128(38, 0), vector.data.view(t.LONG))
    elif not t.is_decimal(vector.dtype):
        vector = Vector(pa.decimal128(38, 0), vector.data.cast(t.LONG))
    return Vector(state, reduce.sum_decimal(vector, groups, state.scale))


class Sum(Accumulator):
    """Sums, exact for integers and decimals. States: the sum, and the number of values, because the sum of none is NULL."""

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (sum_state(args[0]), t.LONG)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        vector = args[0].filled(context.num_rows)
        counts = Vector(t.LONG, pa.array(reduce.count_valid(vector.data, groups)))
        return [_grouped_sum(vector, groups), counts]

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        lost = states[0].null_count  # a partial sum of more than 38 digits is NULL, and makes the total NULL
        total = _grouped_sum(states[0], groups)
        if lost:
            bad = reduce.count_valid(states[0].data, groups) < groups.sizes
            total = Vector(
                total.dtype, pc.if_else(pa.array(bad), pa.scalar(None, total.data.type), total.data)
            )
        counts = reduce.sum_int64(np.asarray(dk.as_int64(states[1].data)), groups.compact_ids, groups.count)
        return [total, Vector(t.LONG, counts)]

    @override
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        """Return the sums. A sum outside of the result type's range is an error or NULL (``try_sum``, legacy decimals)."""
        total, counts = states
        empty = pc.equal(counts.data, 0)
        out = context.dtype
        if out == t.DOUBLE:
            return pc.if_else(empty, pa.scalar(None, t.DOUBLE), total.data)
        if t.is_interval(out):
            return pc.if_else(empty, pa.scalar(None, out), _interval_sums(total, out))
        if out == t.LONG:
            return pc.if_else(empty, pa.scalar(None, t.LONG), _long_sums(total, context))
        # A NULL sum of a group with values is an overflow of 38 digits; a NULL sum without values is a regular result.
        if (
            pc.any(pc.and_(pc.is_null(total.data), pc.invert(empty))).as_py()
            and context.mode is EvalMode.ANSI
        ):
            raise overflow(context.dtype)
        data = pc.if_else(empty, pa.scalar(None, total.data.type), total.data)
        if total.is_narrow:
            return dk.check_range(data, context)
        return dk.to_wide(Vector(total.dtype, data), context)


def _low_words(total: Vector) -> tuple[pa.Array, pa.Array | None]:
    """Return the lower 64 bits of the sums, and a mask: True where a sum fits into 64 bits (None: all of them fit).

    All sums of a narrow vector fit. A wide vector can also consist of sums that fit, because -2^63 is never narrow.
    """
    if total.is_narrow:
        return total.data, None
    low, high = decimal_words(total.data).T
    valid = validity(total.data)
    fits = high == (low >> 63)
    if valid is not None:
        fits |= ~valid
    sums = pa.array(np.ascontiguousarray(low), mask=None if valid is None else ~valid)
    return sums, None if fits.all() else pa.array(fits)


def _long_sums(total: Vector, context: CallContext) -> pa.Array:
    """Convert sums to bigint. A sum outside of its range is an error, NULL (``try_sum``), or wraps around."""
    sums, fits = _low_words(total)
    if fits is None or context.mode is EvalMode.LEGACY:
        return sums  # the lower 64 bits are what is left of a sum that wraps around
    if context.mode is EvalMode.ANSI:
        raise overflow(context.dtype)
    return pc.if_else(fits, sums, pa.scalar(None, t.LONG))


def _interval_sums(total: Vector, dtype: pa.DataType) -> pa.Array:
    """Convert sums of months or microseconds to intervals. Raises for an interval that is too long."""
    sums, fits = _low_words(total)
    if fits is not None:
        raise overflow(dtype)
    return as_intervals(sums, dtype, overflow(dtype))


class Average(Sum):
    """The sum divided by the count: by Spark's decimal division for decimals, otherwise as doubles.

    As in Spark, a bigint column is summed as doubles.
    """

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return super().state_types([t.DOUBLE if args[0] == t.LONG else args[0]], result)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        if args[0].dtype == t.LONG:
            doubles = args[0].physical(context.num_rows).cast(t.DOUBLE, safe=False)
            args = [Vector(t.DOUBLE, doubles)]
        return super().update(args, groups, context)

    @override
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        total, counts = states
        empty = pc.equal(counts.data, 0)
        if context.dtype == t.DOUBLE:
            sums = total.data if total.dtype == t.DOUBLE else _as_double(total)
            divisor = pc.if_else(empty, pa.scalar(None, t.LONG), counts.data).cast(t.DOUBLE)
            return pc.divide(sums, divisor)
        if t.is_interval(context.dtype):
            sums = slots(_interval_sums(total, context.dtype))
            shares = dk.rounded_quotients(sums, np.maximum(slots(counts.data), 1))
            return pc.if_else(empty, pa.scalar(None, t.LONG), pa.array(shares)).view(context.dtype)
        divisor = Vector(pa.decimal128(20, 0), pc.if_else(empty, pa.scalar(None, t.LONG), counts.data))
        if (
            pc.any(pc.and_(pc.is_null(total.data), pc.invert(empty))).as_py()
            and context.mode is EvalMode.ANSI
        ):
            raise overflow(context.dtype)
        return dk.divide(total, divisor, context)


def _as_double(total: Vector) -> pa.Array:
    if total.is_narrow:
        return total.data.cast(t.DOUBLE, safe=False)
    return total.plain().cast(t.STRING).cast(t.DOUBLE)


class Extreme(Reduction):
    """MIN or MAX in Spark's order, in which NaN is the largest value."""

    def __init__(self, largest: bool) -> None:
        self._largest = largest

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (args[0],)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        vector = args[0].filled(context.num_rows)
        return [Vector(vector.dtype, reduce.extreme(vector, groups, self._largest))]


register_accumulator("count", Count())
register_accumulator("sum", Sum())
register_accumulator("avg", Average())
register_accumulator("min", Extreme(False))
register_accumulator("max", Extreme(True))
