"""Order of int64 values: what sorting, grouping by many keys and building join tables spend their time on.

numpy sorts integers with vector instructions, in 5 to 10 ns each, but numbers of rows by their values (``argsort``) in 50
to 100. So a value and the number of its row are packed into one integer, and these are sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kquery_spark.types.vector import Int64s

_SMALL = 256  # so few that the packing costs more than it gains
_BITS = 63


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
        numbers = np.zeros(len(self.rows), np.int64)
        numbers[self.starts[1:]] = 1
        ids = np.empty(len(self.rows), np.int64)
        ids[self.rows] = np.cumsum(numbers, out=numbers)
        return ids


def stable_order(values: Int64s) -> Int64s:
    """Row numbers by value, equal ones in their own order: ``np.argsort(values, kind="stable")``."""
    values = np.ascontiguousarray(values, np.int64)
    count = len(values)
    if count < _SMALL:
        return np.argsort(values, kind="stable")
    if in_order(values):
        return np.arange(count, dtype=np.int64)
    low = int(values.min())
    span = int(values.max()) - low
    room = _BITS - (count - 1).bit_length()
    if span >> room == 0:
        return _rows(_packed(values - low))
    # digit by digit, the lowest first
    rest = values.view(np.uint64) - np.int64(low).view(np.uint64)
    order: Int64s | None = None
    for shift in range(0, span.bit_length(), room):
        digit = ((rest >> np.uint64(shift)) & np.uint64((1 << room) - 1)).view(np.int64)
        by_digit = _rows(_packed(digit if order is None else digit.take(order)))
        order = by_digit if order is None else order.take(by_digit)
    assert order is not None
    return order


def lexicographic_order(columns: Sequence[Int64s]) -> Int64s:
    """Row numbers by the first column, equal ones by the second and so on, equal rows in their own order."""
    order = stable_order(columns[-1])
    for column in reversed(columns[:-1]):
        order = order.take(stable_order(column.take(order)))
    return order


def runs(values: Int64s) -> Runs:
    """Rows in the order of their values, and where each distinct value starts in it."""
    rows = stable_order(values)
    return Runs(rows, _starts(values.take(rows)))


def distinct(values: Int64s) -> Int64s:
    """The different values in order: ``np.unique``, whose hash table takes ten times as long for many values."""
    values = values if in_order(values) else np.sort(values)
    return values.take(_starts(values))


def first_rows(values: Int64s) -> Int64s:
    """The rows, in their order, whose value no row before them has."""
    return np.sort(runs(values).firsts)


def in_order(values: Int64s) -> bool:
    """Whether no value is followed by a smaller one; a glance at the first ones tells it of most that are not."""
    return not (values[1:_SMALL] < values[: _SMALL - 1][: len(values[1:_SMALL])]).any() and not bool(
        (values[1:] < values[:-1]).any()
    )


def _packed(values: Int64s) -> Int64s:
    """Values that are not negative, sorted with the numbers of their rows in the lowest bits."""
    packed = values << (len(values) - 1).bit_length()
    packed |= np.arange(len(values), dtype=np.int64)
    packed.sort()
    return packed


def _rows(packed: Int64s) -> Int64s:
    packed &= (1 << (len(packed) - 1).bit_length()) - 1
    return packed


def _starts(values: npt.NDArray[np.int64]) -> Int64s:
    """Where runs of equal values start."""
    new = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return np.flatnonzero(new)
