"""Aggregates over the sorted values of a group: percentile, percentile_disc, median and mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import ExecutionError
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.registry import CallContext
from kquery_spark.kernels import integer_order
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.aggregates.accumulator import Accumulator, register_accumulator
from kquery_spark.physical.aggregates.lists import Collect, flatten_lists, lists_of_groups
from kquery_spark.physical.aggregates.moments import doubles
from kquery_spark.physical.aggregates.picking import first_or_last_rows
from kquery_spark.physical.aggregates.reduce import Doubles
from kquery_spark.physical.grouping.groups import Groups
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector, validity


def constant_state(argument: Vector, groups: Groups) -> Vector:
    """Return a constant argument as a state column with one row per group; NULL for groups without rows."""
    if argument.is_scalar:
        return Vector(argument.dtype, argument.array(groups.count))
    rows = first_or_last_rows(groups, np.arange(len(groups.ids)), last=False)
    return Vector(argument.dtype, argument.plain().take(pa.array(rows, mask=rows < 0)))


def merged_constant(state: Vector, groups: Groups) -> Vector:
    """Return the constant of each merged group, from the first of its states that is not NULL."""
    valid = validity(state.data)
    rows = np.arange(len(groups.ids)) if valid is None else np.flatnonzero(valid)
    chosen = first_or_last_rows(groups, rows, last=False)
    return Vector(state.dtype, state.data.take(pa.array(chosen, mask=chosen < 0)))


@dataclass(frozen=True)
class _Sorted:
    """The sorted values of all groups, one group after another, with cumulative row counts.

    A value stands for one row, or for as many rows as its frequency says. For the values 10 (frequency 2) and 20 of one
    group and 5 of another, ``values`` is 10 20 5, ``up_to`` is 2 3 4, ``totals`` is 3 1, and ``before`` is 0 3.
    """

    values: Doubles
    totals: Int64s  # rows of each group
    before: Int64s  # rows of the groups before each group
    up_to: Int64s  # rows up to each value

    def at(self, position: Doubles) -> Doubles:
        """Return, for each group, the value at a zero-based position among its rows. Duplicates need not be expanded."""
        rows = self.before + position.astype(np.int64) + 1
        index = np.searchsorted(self.up_to, rows)
        return self.values.take(np.minimum(index, len(self.values) - 1))


class Percentile(Accumulator):
    """Spark's exact percentiles: interpolated linearly between two values, or, if ``discrete``, one of the values.

    Arguments: the value, a percentage or an array of percentages (not with ``fixed``, as in the median), and, if
    ``weighted``, a frequency. States: the values as doubles, the frequencies, and the percentages.
    """

    def __init__(
        self,
        fixed: float | None = None,
        descending: bool = False,
        discrete: bool = False,
        weighted: bool = False,
    ) -> None:
        self._fixed = fixed
        self._descending = descending
        self._discrete = discrete
        self._weighted = weighted

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        shares = t.DOUBLE if self._fixed is not None else args[1]
        return (pa.list_(t.DOUBLE), *([pa.list_(t.LONG)] if self._weighted else []), shares)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        n = context.num_rows
        columns = [args[0].filled(n).plain().cast(t.DOUBLE, safe=False)]
        if self._weighted:
            columns.append(args[2].filled(n).plain().cast(t.LONG))
        rows = _counted_rows(columns)
        ids, index = groups.ids[rows], pa.array(rows)
        states = [
            Vector(pa.list_(c.type), lists_of_groups(c.take(index), ids, groups.count)) for c in columns
        ]
        if self._fixed is not None:
            return [*states, Vector(t.DOUBLE, pa.array(np.full(groups.count, self._fixed)))]
        return [*states, constant_state(args[1], groups)]

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        merged = []
        for state in states[:-1]:
            values, rows = flatten_lists(state.data)
            merged.append(Vector(state.dtype, lists_of_groups(values, groups.ids[rows], groups.count)))
        return [*merged, merged_constant(states[-1], groups)]

    @override
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        count = len(states[0].data)
        ordered, shares = self._sorted(states), _share_matrix(states[-1].data)
        empty = ordered.totals == 0
        results = [self._percentile(ordered, shares[:, i]) for i in range(shares.shape[1])]
        if not t.is_nested(context.dtype):
            return pa.array(results[0] if results else np.zeros(count), mask=empty)
        if not results:  # an empty array of percentages gives NULL in Spark
            return pa.nulls(count, context.dtype)
        offsets = np.where(empty, 0, len(results)).cumsum()
        flat = np.column_stack(results)[~empty].ravel()
        starts = np.concatenate(([0], offsets)).astype(np.int32)
        mask = pa.array(empty) if empty.any() else None
        return pa.ListArray.from_arrays(pa.array(starts), pa.array(flat), type=context.dtype, mask=mask)

    def _sorted(self, states: Sequence[Vector]) -> _Sorted:
        """Sort the values of all groups at once, by group and value, and accumulate their frequencies."""
        flat, ids = flatten_lists(states[0].data)
        key = reduce.float_order(flat)
        order = integer_order.lexicographic_order([ids, ~key if self._descending else key])
        counts = np.ones(len(ids), np.int64)
        if self._weighted:
            counts = np.asarray(dk.as_int64(states[1].data.flatten())).take(order)
        up_to = np.cumsum(counts)
        # ``ends``: the number of values up to the end of each group. ``reached``: the number of rows up to there.
        ends = np.cumsum(np.bincount(ids, minlength=len(states[0].data)))
        reached = np.append(up_to, 0)[ends - 1] if len(ids) else np.zeros(len(ends), np.int64)
        reached[ends == 0] = 0
        before = np.concatenate(([0], reached[:-1])).astype(np.int64)
        values = np.append(doubles(flat).take(order), 0.0)
        return _Sorted(values, reached - before, before, up_to)

    def _percentile(self, ordered: _Sorted, share: Doubles) -> Doubles:
        if self._discrete:
            return ordered.at(np.maximum(np.ceil(ordered.totals * share) - 1, 0))
        position = np.maximum(ordered.totals - 1, 0) * share
        low, high = np.floor(position), np.ceil(position)
        below, above = ordered.at(low), ordered.at(high)
        with np.errstate(invalid="ignore"):
            between = below + (position - low) * (above - below)
        return np.where((low == high) | (below == above), below, between)


def _counted_rows(columns: Sequence[pa.Array]) -> Int64s:
    """Return the rows with a value and a positive frequency. Raises an ExecutionError for a negative frequency."""
    counted = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        valid = validity(column)
        if valid is not None:
            counted &= valid
    for weights in columns[1:]:
        numbers = np.asarray(dk.as_int64(weights.fill_null(0)))
        if (numbers[counted] < 0).any():
            raise ExecutionError(
                "NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION",
                "The frequency of a percentile must not be negative.",
            )
        counted &= numbers > 0
    return np.flatnonzero(counted)


def _share_matrix(state: pa.Array) -> Doubles:
    """Return the percentages as a matrix with one row per group; zeros for a group without rows."""
    if not pa.types.is_list(state.type):
        return doubles(state)[:, np.newaxis]
    valid = validity(state)
    flat = doubles(state.flatten())
    rows = len(state) if valid is None else int(valid.sum())
    width = len(flat) // rows if rows else 0
    shares = np.zeros((len(state), width))
    shares[slice(None) if valid is None else valid] = flat.reshape(rows, width)
    return shares


class Mode(Collect):
    """Returns the most frequent value that is not NULL; of equally frequent ones the lowest, or the ``highest``."""

    def __init__(self, highest: bool) -> None:
        super().__init__(distinct=False)
        self._highest = highest

    @override
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        values, ids = flatten_lists(states[0].data)
        vector = Vector(context.dtype, values)
        key = reduce.ordered_integers(vector)
        if key is None:
            key, _ = reduce.ranks(vector)
        # Sort by group and value: equal values form runs. Then sort the runs by group and length, the longest first.
        order = integer_order.lexicographic_order([ids, ~key if self._highest else key])
        starts = integer_order.run_starts(ids[order], key[order])
        lengths, firsts = np.diff(starts, append=len(order)), order[starts]
        best = firsts[integer_order.lexicographic_order([ids[firsts], -lengths])]
        rows = np.full(len(states[0].data), -1, np.int64)
        # Assign in reverse, so that the last assignment, that of the longest run, remains.
        rows[ids[best][::-1]] = best[::-1]
        return values.take(pa.array(rows, mask=rows < 0))


register_accumulator("percentile", Percentile())
register_accumulator("percentile_weighted", Percentile(weighted=True))
register_accumulator("percentile_descending", Percentile(descending=True))
register_accumulator("percentile_disc", Percentile(discrete=True))
register_accumulator("percentile_disc_descending", Percentile(discrete=True, descending=True))
register_accumulator("median", Percentile(0.5))
register_accumulator("mode", Mode(highest=False))
register_accumulator("mode_highest", Mode(highest=True))
