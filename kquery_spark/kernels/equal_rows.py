"""Finds equal int64 values in unsorted columns without sorting them, the basis of grouping into many groups.

The hash of its value assigns each row to a slot of a table; equal values have the same slot. All rows write their numbers
into their slots, in reverse order, so that each slot ends up with the lowest row number. If the value of that row equals
the value of the row that looks into the slot, it is the first occurrence of the value. Otherwise another value shares the
slot, and the row takes part in the next round, which uses another hash. Example with four slots, where 7 and 3 share one:

    row   value   slot   row in the slot   value of that row   result
    0     7       2      0                 7                   0
    1     5       1      1                 5                   1
    2     3       2      0                 7                   next round
    3     7       2      0                 7                   0
"""

from __future__ import annotations

import numpy as np

from kquery_spark.kernels import integer_order
from kquery_spark.kernels.hash_index import MULTIPLIER, empty_slots
from kquery_spark.types.vector import Int64s

_NEXT_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_MAX_ROUNDS = 8  # afterwards the remaining values, if any, are sorted; a round resolves most of its values


def first_equal_rows(values: Int64s) -> Int64s:
    """Return, for each row, the first row with the same value."""
    count = len(values)
    bits = max(1, (2 * count - 1).bit_length())  # the table has at least two slots per value
    shift = np.uint64(64 - bits)
    table = empty_slots(1 << bits, count)
    first = np.empty(count, np.int64)
    rows = np.arange(count, dtype=np.int64)  # the rows of this round, ascending
    hashes = values.view(np.uint64) * MULTIPLIER
    for _ in range(_MAX_ROUNDS):
        slots = (hashes >> shift).view(np.int64)
        table[slots[::-1]] = np.arange(len(rows) - 1, -1, -1, dtype=table.dtype)
        claimed = table.take(slots)
        different = np.flatnonzero(values.take(claimed) != values)
        if len(rows) == count:
            first[:] = claimed
        else:
            first[rows] = rows.take(claimed)
        if not len(different):
            return first
        rows, values = rows.take(different), values.take(different)
        hashes = hashes.take(different) * _NEXT_MULTIPLIER
        hashes ^= hashes >> np.uint64(32)
    same = integer_order.runs(values)
    first[rows] = rows.take(same.firsts).take(same.ids())
    return first


def first_rows(values: Int64s) -> Int64s:
    """Return the rows, in ascending order, whose value does not occur in an earlier row."""
    if integer_order.is_sorted(values):
        return integer_order.run_starts(values)
    return np.flatnonzero(first_equal_rows(values) == np.arange(len(values)))
