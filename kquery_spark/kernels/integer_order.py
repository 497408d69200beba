"""Sort order and runs of int64 values, which dominate sorting and building join tables.

numpy sorts integers with vector instructions in 5 to 10 ns each, but its ``argsort`` takes 50 to 100 ns. So a value and its
row number are packed into one integer, and these integers are sorted. For example, the values 7, 5, 7 need two bits for a
row number. They are packed as (value - 5) * 4 + row, which is 8, 1, 10, sorted as 1, 8, 10, and the lower two bits give the
order 1, 0, 2. Equal values stay in row order, so the sort is stable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kquery_spark.types.vector import Int64s

_MIN_PACKED_VALUES = 256  # below this number packing costs more than it gains


@dataclass(frozen=True)
class Runs:
    """Row numbers sorted by value (stable), and the positions in ``rows`` at which runs of equal values start."""

    rows: Int64s
    starts: Int64s

    @property
    def firsts(self) -> Int64s:
        """The first row of each distinct value."""
        return self.rows.take(self.starts)

    @property
    def lengths(self) -> Int64s:
        """The number of rows of each distinct value."""
        return np.diff(self.starts, append=len(self.rows))

    def ids(self) -> Int64s:
        """Return, for each row, the position of its value among the distinct values."""
        ids = np.empty(len(self.rows), np.int64)
        ids[self.rows] = run_ids(self.starts, len(self.rows))
        return ids


def stable_order(values: Int64s) -> Int64s:
    """Return row numbers sorted by value, equal values in row order: ``np.argsort(values, kind="stable")``."""
    values = np.ascontiguousarray(values, np.int64)
    count = len(values)
    if count < _MIN_PACKED_VALUES:
        return np.argsort(values, kind="stable")
    if is_sorted(values):
        return np.arange(count, dtype=np.int64)
    low = int(values.min())
    span = int(values.max()) - low
    bits = (count - 1).bit_length()  # bits of a row number
    room = 63 - bits  # bits left for the value
    # Values that need more bits are split into several "digits" of ``room`` bits, as in a radix sort.
    if span >> room:
        offsets, most = values.view(np.uint64) - np.int64(low).view(np.uint64), np.uint64((1 << room) - 1)
        shifts = reversed(range(0, span.bit_length(), room))
        return lexicographic_order([((offsets >> np.uint64(s)) & most).view(np.int64) for s in shifts])
    packed = (values - low) << bits
    packed |= np.arange(count, dtype=np.int64)
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def lexicographic_order(columns: Sequence[Int64s]) -> Int64s:
    """Return row numbers sorted by the first column, then by the second and so on; equal rows stay in row order.

    It sorts by the last column first. As each sort is stable, later sorts preserve that order among equal values.
    """
    order = stable_order(columns[-1])
    for column in reversed(columns[:-1]):
        order = order.take(stable_order(column.take(order)))
    return order


def runs(values: Int64s) -> Runs:
    """Sort rows by value and find the runs of equal values."""
    rows = stable_order(values)
    return Runs(rows, run_starts(values.take(rows)))


def distinct_values(values: Int64s) -> Int64s:
    """Return the distinct values in order. The hash table of ``np.unique`` takes ten times as long for large arrays."""
    values = values if is_sorted(values) else np.sort(values)
    return values.take(run_starts(values))


def is_sorted(values: Int64s) -> bool:
    """Return True if the values ascend. Checking the first ones separately rejects most unsorted arrays early."""
    return not any((some[1:] < some[:-1]).any() for some in (values[:_MIN_PACKED_VALUES], values))


def run_starts(*columns: Int64s) -> Int64s:
    """Return the rows at which runs of equal values start."""
    new = np.ones(len(columns[0]), np.bool_)
    np.not_equal(columns[0][1:], columns[0][:-1], out=new[1:])
    for column in columns[1:]:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def run_ids(starts: Int64s, count: int) -> Int64s:
    """Return the number of the run for each of ``count`` rows, given the rows at which runs start."""
    numbers = np.zeros(count, np.int64)
    numbers[starts[1:]] = 1
    return np.cumsum(numbers, out=numbers)
