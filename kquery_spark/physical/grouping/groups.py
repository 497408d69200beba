"""Numbers the groups of rows with equal integer codes.

``number_groups`` takes the first of these methods that suits the codes:

1. Sorted codes, as in files that were written in the order of the key: each run of equal codes is a group.
2. Up to ``_MAX_TABLE_CODES`` possible codes: a compiled loop numbers and counts them in one pass (``_compiled_groups``).
3. Without the loop, a few groups that nearly all occur in the first rows: one lookup per row (``_few_groups``).
4. Few possible codes: count the rows of each code, and number the codes that occur.
5. Up to ``_MAX_CODES_PER_ROW`` possible codes per row: find the first row of each code in an array with one entry per
   code, and number the codes that occur (``_direct_groups``).
6. Otherwise: find the first row of each code in a hash table (``_hashed_groups``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.kernels import integer_order
from kquery_spark.kernels.compiled import AGGREGATE_LOOPS
from kquery_spark.kernels.equal_rows import first_equal_rows
from kquery_spark.kernels.hash_index import empty_slots
from kquery_spark.types.vector import Int64s

MAX_CARDINALITY = 2**62
"""The limit of the number of possible codes, which therefore fit into int64."""
_SAMPLE_ROWS = 4096  # the number of first rows that are sampled for the groups
_MAX_SEARCHED_GROUPS = 4  # up to this number of groups that the sample lacks, each is searched by itself
# With at most this number of groups in the sample, it probably has nearly all groups.
_MAX_SAMPLE_GROUPS = 256
_MAX_TABLE_CODES = 65536  # with more possible codes, neither the compiled loop nor the sample is used
_MIN_COMPILED_ROWS = 4096
MAX_COMPILED_GROUPS = 16_384
"""The maximum number of groups for the compiled loops. Sizes or sums of more groups do not fit into the CPU caches."""
# ``AGGREGATE_LOOPS.kernels`` measures work in column chunks. Without the loops, numbering or summing this number of rows
# takes about as long as reading one chunk.
_ROWS_PER_CHUNK = 65_536
# Up to this number of possible codes, rows are counted by code before groups are numbered.
_MAX_COUNTED_CODES = 4096
# Up to this number of possible codes per row, an array with one entry per code is faster than a hash table.
_MAX_CODES_PER_ROW = 4


@dataclass(frozen=True)
class ColumnCodes:
    """One code per row, each from 0 to ``cardinality - 1``. Those of a dictionary may be narrower than int64."""

    values: npt.NDArray[np.signedinteger]
    cardinality: int

    def widened(self) -> Codes:
        """Return the same codes as int64."""
        return Codes(self.values.astype(np.int64, copy=False), self.cardinality)


@dataclass(frozen=True)
class Codes(ColumnCodes):
    """One int64 code per row, each from 0 to ``cardinality - 1``."""

    values: Int64s


@dataclass(frozen=True)
class Groups:
    """The groups of rows: for each row the number of its group (from 0 to ``count - 1``), and their first rows.

    compact_ids: the number of each row's group, as int64 or as uint16. known_sizes: the number of rows of each group, if it
    was computed with the groups.
    """

    compact_ids: npt.NDArray[np.integer]
    count: int
    first_rows: Int64s
    known_sizes: Int64s | None = None

    @cached_property
    def ids(self) -> Int64s:
        """The number of each row's group, as int64."""
        return self.compact_ids.astype(np.int64, copy=False)

    @cached_property
    def sizes(self) -> Int64s:
        """The number of rows of each group."""
        return np.bincount(self.ids, minlength=self.count) if self.known_sizes is None else self.known_sizes

    def representatives(self) -> pa.Array:
        """Return the first row of each group, as indices with which to take the key columns."""
        return pa.array(self.first_rows)


def number_groups(column: ColumnCodes) -> Groups:
    """Number the groups of rows with equal codes, by the fastest method for these codes."""
    groups = _sorted_groups(column) or _compiled_groups(column)
    if groups is not None:
        return groups
    codes, num_rows = column.widened(), len(column.values)
    groups = _few_groups(codes)
    if groups is not None:
        return groups
    if codes.cardinality <= _MAX_COUNTED_CODES:
        return _counted_groups(codes)
    if codes.cardinality <= _MAX_CODES_PER_ROW * num_rows:
        return _direct_groups(codes)
    return _hashed_groups(codes)


def compress(codes: Codes) -> Codes:
    """Renumber the codes from 0 to the number of distinct codes minus 1. Equal rows stay equal, and sorted codes sorted."""
    groups = _sorted_groups(codes) or _hashed_groups(codes)
    return Codes(groups.ids, max(1, groups.count))


def _sorted_groups(codes: ColumnCodes) -> Groups | None:
    """Group rows whose codes ascend; otherwise None."""
    if not integer_order.is_sorted(codes.values):
        return None
    num_rows = len(codes.values)
    starts = integer_order.run_starts(codes.values)
    sizes = np.diff(starts, append=num_rows)
    return Groups(integer_order.run_ids(starts, num_rows), len(starts), starts, sizes)


def loops_for(num_rows: int) -> Any:
    """Return the compiled loops over rows and their groups; None if they are not loaded, or not worth it for so few rows."""
    if num_rows < _MIN_COMPILED_ROWS:
        return None
    return AGGREGATE_LOOPS.kernels(max(1, num_rows // _ROWS_PER_CHUNK))


def _compiled_groups(codes: ColumnCodes) -> Groups | None:
    """Group many rows with few possible codes by the compiled loop; None without the loop, or for too many groups."""
    num_rows = len(codes.values)
    loops = loops_for(num_rows) if codes.cardinality <= _MAX_TABLE_CODES else None
    if loops is None:
        return None
    values = np.ascontiguousarray(codes.values, np.int32 if codes.values.itemsize <= 4 else np.int64)
    numbers = np.full(codes.cardinality, loops.UNSEEN, np.uint16)
    ids = np.empty(num_rows, np.uint16)
    first_rows = np.empty(min(codes.cardinality, MAX_COMPILED_GROUPS), np.int64)
    sizes = np.zeros((loops.LANES, len(first_rows)), np.int64)
    count = loops.number_codes(values, numbers, ids, first_rows, sizes)
    return None if count < 0 else Groups(ids, count, first_rows[:count], sizes[:, :count].sum(axis=0))


def _counted_groups(codes: Codes) -> Groups:
    sizes = np.bincount(codes.values, minlength=codes.cardinality)
    present_codes = np.flatnonzero(sizes)
    ids, count = codes.values, len(present_codes)
    if count < codes.cardinality:
        places = np.zeros(codes.cardinality, np.int64)
        places[present_codes] = np.arange(count)
        ids, sizes = np.take(places, ids), sizes[present_codes]
    return Groups(ids, count, _first_row_of_each_group(ids, count), sizes)


def _direct_groups(codes: Codes) -> Groups:
    """Group rows by an array that first holds the first row of each code, and then the group of each code."""
    table = _scan_first_rows(codes.values, codes.cardinality)
    present_codes = np.flatnonzero(table >= 0)
    firsts = table.take(present_codes).astype(np.int64)
    table[present_codes] = np.arange(len(firsts), dtype=table.dtype)
    return Groups(table.take(codes.values).astype(np.int64), len(firsts), firsts)


def _hashed_groups(codes: Codes) -> Groups:
    """Group rows by a hash table. The groups are numbered in the order of their first rows."""
    first = first_equal_rows(codes.values)
    firsts = np.flatnonzero(first == np.arange(len(first)))
    numbers = np.empty(len(first), np.int64)
    numbers[firsts] = np.arange(len(firsts))
    return Groups(numbers.take(first), len(firsts), firsts)


def _few_groups(codes: Codes) -> Groups | None:
    """Group many rows into few groups, if nearly all groups occur in the first rows; otherwise None.

    The codes of the sample are numbered first, and one lookup per row assigns these numbers. Rows with other codes
    (``late_rows``) must be few; their codes are numbered afterwards. The sizes of the groups are not counted.
    """
    values = codes.values
    if codes.cardinality > _MAX_TABLE_CODES or len(values) < 4 * _SAMPLE_ROWS:
        return None
    first = _scan_first_rows(values[:_SAMPLE_ROWS], codes.cardinality)
    head_groups = np.flatnonzero(first >= 0)
    if len(head_groups) > _MAX_SAMPLE_GROUPS:
        return None
    group_ids = np.full(codes.cardinality, -1, np.int64)
    group_ids[head_groups] = np.arange(len(head_groups))
    ids = np.take(group_ids, values)
    late_rows = np.flatnonzero(ids < 0) if len(head_groups) < codes.cardinality else head_groups[:0]
    if len(late_rows) > len(values) // _SAMPLE_ROWS + _MAX_SAMPLE_GROUPS:
        return None
    late, at = np.unique(values[late_rows], return_index=True)
    group_ids[late] = np.arange(len(head_groups), len(head_groups) + len(late))
    ids[late_rows] = group_ids[values[late_rows]]
    return Groups(ids, len(head_groups) + len(late), np.concatenate((first[head_groups], late_rows[at])))


def _scan_first_rows(ids: Int64s, count: int) -> npt.NDArray[np.signedinteger[Any]]:
    """Return the first row of each group; -1 for a group without rows.

    The rows are assigned in reverse, because numpy keeps the last of several assignments.
    """
    first = empty_slots(count, len(ids))
    first[ids[::-1]] = np.arange(len(ids) - 1, -1, -1, dtype=first.dtype)
    return first


def _first_row_of_each_group(ids: Int64s, count: int) -> Int64s:
    """Return the first row of each group. A sample of first rows usually has nearly all groups; others are searched."""
    for rows in (_SAMPLE_ROWS, len(ids)) if len(ids) > _SAMPLE_ROWS else (len(ids),):
        first = _scan_first_rows(ids[:rows], count)
        missing = np.flatnonzero(first < 0)
        if len(missing) <= _MAX_SEARCHED_GROUPS:
            break
    for group in missing:
        first[group] = np.argmax(ids == group)
    return first.astype(np.int64, copy=False)
