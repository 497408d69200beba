"""Sorts rows by several keys in passes over integers. Each pass sorts only the rows that are still tied.

A pass sorts by one int64 per row, the *lead*. It packs the leading columns of the sort keys as long as they fit; a column
that does not fit is split into high and low bits. The next pass sorts only the rows that are tied, by the number of their
run of ties and the next columns. For ``ORDER BY day, note`` and the rows

    day   2 1 2 1 3
    note  d a c b e

the first pass gives the rows 1 3 | 0 2 | 4, in three runs. The second pass sorts the tied rows 1 3 0 2 by (run, note), which
are (0, a), (0, b), (1, d), (1, c), and gives 1 3 2 0 4. The note of the last row is never read. Keys that are expensive
to compare, such as strings, are thus converted for few rows if the keys before them are nearly unique.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kquery_spark.kernels.integer_order import run_starts, stable_order
from kquery_spark.physical.sorting.sort_keys import KeyStep
from kquery_spark.types.vector import Int64s

_MAX_BITS = 62
"""Bits of a lead and a row number together, because ``stable_order`` packs both into one integer."""

_MIN_ROWS_PER_LIMIT = 8
"""A top-k looks for candidates before it sorts if it returns less than one of this number of rows."""


class RowOrder(NamedTuple):
    """Row numbers in sorted order (stable), and a mask that is True where a sorted row differs from the one before."""

    rows: Int64s
    is_new: npt.NDArray[np.bool_]


def sorted_rows(steps: Sequence[KeyStep], num_rows: int, limit: int | None = None) -> Int64s:
    """Return the row numbers sorted by the columns of the steps; with a limit, only the first ones."""
    order = _Refinement(num_rows, None, limit, marks_ties=False)
    order.run(list(steps))
    return order.rows[:limit]


def row_order(
    steps: Sequence[KeyStep], num_rows: int, groups: Int64s | None = None, limit: int | None = None
) -> RowOrder:
    """Sort rows by their group and then by the columns of the steps.

    groups: the number of each row's group; None for one group. limit: the number of leading rows of each group that must be
    in order. The other rows of a group follow in any order, and ``is_new`` may be False where they differ. Without groups,
    they may be missing.
    """
    order = _Refinement(num_rows, groups, limit, marks_ties=True)
    order.run(list(steps))
    return RowOrder(order.rows, order.is_new)


class _Refinement:
    """The state between passes.

    rows: all rows, sorted as far as the passes have compared them. is_new: True at the start of each run of ties.
    _tied: the positions in ``rows`` that are still tied, in ascending order. _runs: the number of the run of ties at each of
    these positions. _columns: key columns that were computed for these positions, but did not fit into a lead yet.
    """

    def __init__(self, num_rows: int, groups: Int64s | None, limit: int | None, *, marks_ties: bool) -> None:
        self.rows: Int64s = np.arange(num_rows, dtype=np.int64)
        self.is_new = np.zeros(num_rows, np.bool_)
        self.is_new[:1] = True
        self._num_rows = num_rows
        self._groups = groups
        self._limit = limit
        self._marks_ties = marks_ties
        self._tied: Int64s = np.arange(num_rows, dtype=np.int64)
        self._runs = np.zeros(num_rows, np.int64) if groups is None else groups
        self._columns: list[Int64s] = []
        self._is_first = True  # True in the first pass, for all rows in their original order
        self._group_starts: Int64s | None = None

    def run(self, steps: list[KeyStep]) -> None:
        """Sort until no rows are tied, or until no columns are left."""
        while len(self._tied) and (steps or self._columns or self._is_first):
            lead = self._next_lead(steps)
            if self._is_first and self._groups is None and self._limit is not None:
                lead = self._keep_candidates(lead, self._limit)
            order = self._sort(lead)
            self._is_first = False
            if steps or self._columns or self._marks_ties:
                self._keep_ties(lead, order)
            else:
                return

    def _next_lead(self, steps: list[KeyStep]) -> Int64s:
        """Pack the run and the next columns into one integer per tied row. Removes the steps that it used from the list.

        Expensive columns wait for the next pass if the lead has enough values to distinguish most rows.
        """
        count = len(self._tied)
        lead = self._runs
        span = int(lead.max()) + 1
        # span: the lead is below this number. room: the largest span that one pass can sort.
        room = 1 << (_MAX_BITS - (count - 1).bit_length())
        while self._columns or steps:
            if not self._columns:
                if span >= count and not steps[0].is_cheap:
                    break
                rows = None if self._is_first else self.rows[self._tied]
                self._columns = steps.pop(0).columns(rows)
                continue
            column = self._columns[0]
            low, high = int(column.min()), int(column.max())
            width = high - low + 1
            # The offsets are unsigned, because the width may need all 64 bits.
            offsets = column.view(np.uint64) - np.int64(low).view(np.uint64)
            if span * width <= room:
                self._columns.pop(0)
                if width > 1:
                    lead = offsets.view(np.int64) if span == 1 else lead * width + offsets.view(np.int64)
                    span *= width
                continue
            # Sort by the high bits now, and by the low bits in the next pass if rows are still tied.
            bits = max(0, (room // span).bit_length() - 1)
            if bits == 0:  # the lead is full, and the next pass continues with this column
                break
            shift = (width - 1).bit_length() - bits
            self._columns[0] = (offsets & np.uint64((1 << shift) - 1)).view(np.int64)
            lead = (lead << bits) | (offsets >> np.uint64(shift)).view(np.int64)
            break
        return lead

    def _keep_candidates(self, lead: Int64s, limit: int) -> Int64s:
        """For a small limit, drop the rows that cannot be among the first ones, and return the lead of the others.

        This takes linear time, because ``np.partition`` finds the lead of the last candidate without sorting.
        """
        if limit >= len(lead) // _MIN_ROWS_PER_LIMIT:
            return lead
        bound = np.partition(lead, limit)[limit] if limit else lead.min()
        self.rows = np.flatnonzero(lead <= bound)
        self._columns = [column.take(self.rows) for column in self._columns]
        self._tied = np.arange(len(self.rows), dtype=np.int64)
        self.is_new = self.is_new[: len(self.rows)]
        return lead.take(self.rows)

    def _sort(self, lead: Int64s) -> Int64s:
        """Sort the tied rows by the lead, and return their order."""
        order = stable_order(lead)
        if self._is_first:  # the rows are ascending, and without candidates they are 0, 1, 2, ...
            self.rows = order if len(order) == self._num_rows else self.rows.take(order)
        else:
            self.rows[self._tied] = self.rows[self._tied].take(order)
        return order

    def _keep_ties(self, lead: Int64s, order: Int64s) -> None:
        """Mark where runs of ties start, and keep the positions of rows that are still tied. order: from ``_sort``."""
        at = self._tied
        starts = run_starts(lead.take(order))
        self.is_new[at.take(starts)] = True
        lengths = np.diff(starts, append=len(at))
        is_tied = lengths > 1
        if self._limit is not None:  # ties that begin after the limit of their group need no order
            is_tied &= at.take(starts) - self._starts_of_groups(at.take(starts)) < self._limit
        still_tied = np.repeat(is_tied, lengths)
        self._tied = at[still_tied]
        lengths = lengths[is_tied]
        self._runs = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
        self._columns = [column.take(order[still_tied]) for column in self._columns]

    def _starts_of_groups(self, at: Int64s) -> Int64s:
        """Return the first position of the group at each of these positions. The first pass has sorted by group."""
        if self._groups is None:
            return np.zeros(len(at), np.int64)
        if self._group_starts is None:
            starts = run_starts(self._groups.take(self.rows))
            self._group_starts = np.repeat(starts, np.diff(starts, append=len(self.rows)))
        return self._group_starts.take(at)
