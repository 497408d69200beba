"""Aggregates whose state is a list of values per group: collect_list, collect_set, percentile, median, mode, estimates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from kquery_spark.functions import decimal_kernels as dk
from kquery_spark.functions import hyperloglog
from kquery_spark.functions.registry import CallContext
from kquery_spark.kernels import integer_order
from kquery_spark.kernels.ordered_bytes import normalized
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.aggregates.accumulator import Accumulator, register_accumulator
from kquery_spark.physical.aggregates.moments import doubles
from kquery_spark.physical.keys import Codes, Groups, encode, pack
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector


def gather(values: pa.Array, ids: Int64s, count: int) -> pa.Array:
    """One list per group, values in row order."""
    sizes = np.bincount(ids, minlength=count)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > 2**31 - 1:
        raise pa.ArrowCapacityError("more than 2147483647 values in the lists of one batch")
    order = integer_order.stable_order(ids)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values.take(pa.array(order)))


def spread(lists: pa.Array) -> tuple[pa.Array, Int64s]:
    """All values of a list column, and the row each comes from."""
    return lists.flatten(), np.asarray(lists.value_parent_indices().to_numpy(), np.int64)


class Collect(Accumulator):
    """All values that are not NULL, in row order; ``distinct`` keeps the first of equal ones, and -0.0 as 0.0."""

    def __init__(self, distinct: bool) -> None:
        self._distinct = distinct

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (pa.list_(args[0]),)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        data = Vector(args[0].dtype, args[0].physical(context.num_rows)).plain()
        ids, rows = reduce.present(data, groups)
        if rows is not None:
            data = data.take(pa.array(rows))
        return [self._gathered(args[0].dtype, data, ids, groups.count)]

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        values, rows = spread(states[0].data)
        return [self._gathered(states[0].dtype.value_type, values, groups.ids[rows], groups.count)]

    def _gathered(self, dtype: pa.DataType, values: pa.Array, ids: Int64s, count: int) -> Vector:
        if self._distinct and len(ids):
            codes = pack([Codes(ids, max(count, 1)), encode(Vector(dtype, values))], len(ids))
            first = integer_order.first_rows(codes.values)
            values, ids = normalized(values.take(pa.array(first))), ids[first]
        return Vector(pa.list_(dtype), gather(values, ids, count))

    @override
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        return states[0].data


class DistinctEstimate(Accumulator):
    """Spark's ``approx_count_distinct(x, error)``; the state is the group's registers that are not empty."""

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (pa.list_(t.INT),)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        error = (
            pc.max(args[1].array(context.num_rows)).as_py() if len(args) > 1 else hyperloglog.DEFAULT_ERROR
        )
        data = args[0].physical(context.num_rows)
        ids, rows = reduce.present(data, groups)
        if not len(ids):
            return [self._state(ids, ids, groups.count)]
        if rows is not None:
            data = data.take(pa.array(rows))
        codes = hyperloglog.codes(Vector(args[0].dtype, data), len(ids), hyperloglog.precision_of(error))
        return [self._state(ids, codes, groups.count)]

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        codes, rows = spread(states[0].data)
        return [self._state(groups.ids[rows], np.asarray(dk.as_int64(codes)), groups.count)]

    def _state(self, ids: Int64s, codes: Int64s, count: int) -> Vector:
        ids, codes = hyperloglog.highest(ids, codes, count)
        return Vector(pa.list_(t.INT), gather(pa.array(codes.astype(np.int32)), ids, count))

    @override
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        codes, ids = spread(states[0].data)
        return pa.array(hyperloglog.estimates(ids, np.asarray(dk.as_int64(codes)), len(states[0].data)))


class Percentile(Accumulator):
    """The exact percentile with linear interpolation, Spark's ``percentile(x, p)``; ``median`` is p = 0.5.

    States: the values as doubles, and p.
    """

    def __init__(self, fixed: float | None = None) -> None:
        self._fixed = fixed
        self._values = Collect(distinct=False)

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (pa.list_(t.DOUBLE), t.DOUBLE)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        plain = Vector(args[0].dtype, args[0].physical(context.num_rows)).plain()
        values = self._values.update([Vector(t.DOUBLE, plain.cast(t.DOUBLE, safe=False))], groups, context)[0]
        share = np.zeros(groups.count)
        if self._fixed is not None:
            share[:] = self._fixed
        elif args[1].is_scalar:
            share[:] = float(args[1].plain().as_py())
        else:
            share[groups.ids] = doubles(args[1].plain())
        return [values, Vector(t.DOUBLE, pa.array(share))]

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        share = np.zeros(groups.count)
        np.maximum.at(share, groups.ids, doubles(states[1].data))
        return [self._values.merge(states[:1], groups, context)[0], Vector(t.DOUBLE, pa.array(share))]

    @override
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        flat, ids = spread(states[0].data)
        count = len(states[0].data)
        numbers = doubles(flat)
        order = integer_order.lexicographic_order([ids, reduce.float_order(flat)])
        numbers = np.append(numbers[order], 0.0)
        sizes = np.bincount(ids, minlength=count)
        starts = np.cumsum(sizes) - sizes
        position = np.maximum(sizes - 1, 0) * doubles(states[1].data)
        low, high = np.floor(position), np.ceil(position)
        below = numbers[np.minimum(starts + low.astype(np.int64), len(numbers) - 1)]
        above = numbers[np.minimum(starts + high.astype(np.int64), len(numbers) - 1)]
        with np.errstate(invalid="ignore"):
            between = (high - position) * below + (position - low) * above
        exact = (low == high) | (below == above)
        return pa.array(np.where(exact, below, between), mask=sizes == 0)


class Mode(Collect):
    """The most frequent value that is not NULL; of equally frequent ones the lowest, as Spark's ``mode(x, true)``."""

    def __init__(self) -> None:
        super().__init__(distinct=False)

    @override
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        values, ids = spread(states[0].data)
        count = len(states[0].data)
        codes = pack([Codes(ids, max(count, 1)), encode(Vector(context.dtype, values))], len(ids))
        value_runs = integer_order.runs(codes.values)
        first = value_runs.firsts
        columns = [pa.array(ids[first]), pa.array(value_runs.lengths), values.take(pa.array(first))]
        seen = pa.table(columns, names=["group", "often", "value"])
        order = seen.sort_by([("group", "ascending"), ("often", "descending"), ("value", "ascending")])
        groups, best = np.unique(order["group"].to_numpy(), return_index=True)
        best_rows = np.full(count, -1, np.int64)
        best_rows[groups] = best
        return order["value"].combine_chunks().take(pa.array(best_rows, mask=best_rows < 0))


register_accumulator("collect_list", Collect(distinct=False))
register_accumulator("collect_set", Collect(distinct=True))
register_accumulator("approx_count_distinct", DistinctEstimate())
register_accumulator("percentile", Percentile())
register_accumulator("mode", Mode())
register_accumulator("median", Percentile(0.5))
