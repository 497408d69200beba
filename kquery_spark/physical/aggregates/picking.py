"""Aggregates that pick the value of one row (first, last, max_by, min_by), bitwise aggregates, and count_if."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.registry import CallContext
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.aggregates.accumulator import Accumulator, Reduction, register_accumulator
from kquery_spark.physical.aggregates.basic import Count
from kquery_spark.physical.grouping.groups import Groups
from kquery_spark.physical.grouping.key_values import as_integers
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector, true_flags, validity


def pick(vector: Vector, rows: Int64s) -> Vector:
    """Return the values of one row per group; NULL for the row number -1."""
    index = pa.array(rows, mask=rows < 0) if (rows < 0).any() else pa.array(rows)
    return Vector(vector.dtype, vector.data.take(index))


def first_or_last_rows(groups: Groups, rows: Int64s, last: bool) -> Int64s:
    """Return the first or last row of each group among ``rows``, which are ascending; -1 for a group without one.

    numpy assigns in order, so of several rows of a group the last assignment remains. For the first row, ``rows`` is
    reversed.
    """
    ends = np.full(groups.count, -1, np.int64)
    if not last:
        rows = rows[::-1]
    ends[groups.ids[rows]] = rows
    return ends


class FirstOrLast(Accumulator):
    """FIRST or LAST in row order. The second state is TRUE if the group has a value, which can be NULL."""

    def __init__(self, last: bool, ignore_nulls: bool) -> None:
        self._last = last
        self._ignore_nulls = ignore_nulls

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (args[0], t.BOOL)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        data = args[0].physical(context.num_rows)
        valid = validity(data) if self._ignore_nulls else None
        rows = np.arange(context.num_rows) if valid is None else np.flatnonzero(valid)
        return self._states(Vector(args[0].dtype, data), groups, rows)

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        present = states[1].data.to_numpy(zero_copy_only=False)
        return self._states(states[0], groups, np.flatnonzero(present))

    def _states(self, values: Vector, groups: Groups, rows: Int64s) -> list[Vector]:
        chosen = first_or_last_rows(groups, rows, self._last)
        return [pick(values, chosen), Vector(t.BOOL, pa.array(chosen >= 0))]


class ExtremeBy(Reduction):
    """max_by and min_by: the first argument in the row with the largest or smallest second one; in ties, the last row."""

    def __init__(self, largest: bool) -> None:
        self.largest = largest

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (args[0], args[1])

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        value, by = (a.filled(context.num_rows) for a in args)
        ordered = reduce.ordered_integers(by)
        if ordered is None:
            ordered, _ = reduce.ranks(by)
        valid = validity(by.data)
        rows = np.arange(len(ordered)) if valid is None else np.flatnonzero(valid)
        start = np.iinfo(np.int64).min if self.largest else np.iinfo(np.int64).max
        best = np.full(groups.count, start, np.int64)
        (np.maximum if self.largest else np.minimum).at(best, groups.ids[rows], ordered[rows])
        # Of the rows with the best key of their group, take the last one.
        rows = rows[ordered[rows] == best[groups.ids[rows]]]
        chosen = first_or_last_rows(groups, rows, last=True)
        return [pick(value, chosen), pick(by, chosen)]


class Bits(Reduction):
    """bit_and, bit_or and bit_xor of integers. NULLs are ignored. start: the neutral value of the operation."""

    def __init__(self, fold: np.ufunc, start: int) -> None:
        self._fold = fold
        self._start = start

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (args[0],)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        vector = args[0].filled(context.num_rows)
        ids, rows = reduce.valid_rows(vector.data, groups)
        integers: npt.NDArray[np.int64] = np.asarray(dk.as_int64(as_integers(vector)))
        folded = np.full(groups.count, self._start, np.int64)
        self._fold.at(folded, ids, reduce.take_rows(integers, rows))
        empty = reduce.count_valid(vector.data, groups) == 0
        array = pa.array(np.where(empty, 0, folded), mask=empty if empty.any() else None)
        return [Vector(vector.dtype, array.cast(vector.dtype))]


class CountIf(Count):
    """Counts the rows for which the argument is TRUE."""

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        flags = true_flags(args[0].physical(context.num_rows))
        return [Vector(t.LONG, pa.array(np.bincount(groups.ids[flags], minlength=groups.count), t.LONG))]


register_accumulator("first", FirstOrLast(last=False, ignore_nulls=False))
register_accumulator("first_ignore_nulls", FirstOrLast(last=False, ignore_nulls=True))
register_accumulator("last", FirstOrLast(last=True, ignore_nulls=False))
register_accumulator("last_ignore_nulls", FirstOrLast(last=True, ignore_nulls=True))
register_accumulator("max_by", ExtremeBy(True))
register_accumulator("min_by", ExtremeBy(False))
register_accumulator("bit_and", Bits(np.bitwise_and, -1))
register_accumulator("bit_or", Bits(np.bitwise_or, 0))
register_accumulator("bit_xor", Bits(np.bitwise_xor, 0))
register_accumulator("count_if", CountIf())
