"""Order of int64 values: what sorting, grouping by many keys and building join tables spend their time on.

numpy sorts integers with vector instructions, in 5 to 10 ns each, but numbers of rows by their values (``argsort``) in 50
to 100. So a value and the number of its row are packed into one integer, and these are sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kquery_spark.types.vector import Int64s

_MIN_PACKED_VALUES = 256  # so few that the packing costs more than it gains


@dataclass(frozen=True)
class Runs:
    """Rows in the order of their values, equal ones in their own order; runs of equal values start at ``starts``."""

    rows: Int64s
    starts: Int64s

    @property
    def firsts(self) -> Int64s:
        """The first row of each distinct value."""
        return self.rows.take(self.starts)

    @property
    def lengths(self) -> Int64s:
        """How many rows each distinct value has."""
        return np.diff(self.starts, append=len(self.rows))

    def ids(self) -> Int64s:
        """For each row the number of its value among the distinct ones."""
        ids = np.empty(len(self.rows), np.int64)
        ids[self.rows] = numbered(self.starts, len(self.rows))
        return ids


def stable_order(values: Int64s) -> Int64s:
    """Row numbers by value, equal ones in their own order: ``np.argsort(values, kind="stable")``."""
    values = np.ascontiguousarray(values, np.int64)
    count = len(values)
    if count < _MIN_PACKED_VALUES:
        return np.argsort(values, kind="stable")
    if in_order(values):
        return np.arange(count, dtype=np.int64)
    low = int(values.min())
    span = int(values.max()) - low
    bits = (count - 1).bit_length()  # of a row's number
    room = 63 - bits
    if span >> room:  # as several digits, the highest first
        offsets, most = values.view(np.uint64) - np.int64(low).view(np.uint64), np.uint64((1 << room) - 1)
        shifts = reversed(range(0, span.bit_length(), room))
        return lexicographic_order([((offsets >> np.uint64(s)) & most).view(np.int64) for s in shifts])
    packed = (values - low) << bits
    packed |= np.arange(count, dtype=np.int64)
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def lexicographic_order(columns: Sequence[Int64s]) -> Int64s:
    """Row numbers by the first column, equal ones by the second and so on, equal rows in their own order."""
    order = stable_order(columns[-1])
    for column in reversed(columns[:-1]):
        order = order.take(stable_order(column.take(order)))
    return order


def runs(values: Int64s) -> Runs:
    """Rows in the order of their values, and where each distinct value starts in it."""
    rows = stable_order(values)
    return Runs(rows, run_starts(values.take(rows)))


def distinct(values: Int64s) -> Int64s:
    """The different values in order: ``np.unique``, whose hash table takes ten times as long for many values."""
    values = values if in_order(values) else np.sort(values)
    return values.take(run_starts(values))


def first_rows(values: Int64s) -> Int64s:
    """The rows, in their order, whose value no row before them has."""
    return np.sort(runs(values).firsts)


def in_order(values: Int64s) -> bool:
    """Whether no value is followed by a smaller one; a pre-check of the first ones rejects most that are not."""
    return not any((some[1:] < some[:-1]).any() for some in (values[:_MIN_PACKED_VALUES], values))


def run_starts(*columns: Int64s) -> Int64s:
    """Where runs of rows with equal values start."""
    new = np.ones(len(columns[0]), np.bool_)
    np.not_equal(columns[0][1:], columns[0][:-1], out=new[1:])
    for column in columns[1:]:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def numbered(starts: Int64s, count: int) -> Int64s:
    """For each of so many rows the number of its run."""
    numbers = np.zeros(count, np.int64)
    numbers[starts[1:]] = 1
    return np.cumsum(numbers, out=numbers)
