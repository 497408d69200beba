"""Sums of integers per group.

Consecutive rows often belong to the same group. With a single array of sums, each addition would load what the previous
one has just stored, and wait about five cycles for it. Therefore, there are ``LANES`` arrays: row i is added to array
``i % LANES`` (the last rows to array 0), and the caller adds up the arrays.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import int64, uint16

LANES = 4
"""The number of arrays that share the rows. ``sum_groups`` is unrolled for exactly this number."""


def readonly_array(dtype: Any) -> Any:
    """Return the numba type of contiguous arrays that a loop only reads."""
    return numba.types.Array(dtype, 1, "C", readonly=True)


@numba.njit(
    [int64(readonly_array(int64), readonly_array(dtype), int64[:, ::1]) for dtype in (uint16, int64)],
    cache=True,
    nogil=True,
)
def sum_groups(values: Any, ids: Any, sums: Any) -> Any:
    """Add each value to the sum of its group in one of the ``LANES`` rows of ``sums``.

    ids: the group of each value. It must be less than the number of columns of ``sums``; this is not checked. 16-bit ids
    take a quarter of the memory, so the ids of a large batch stay in the cache while one column after another is summed.

    Returns a number M such that the magnitude of no value exceeds M + 1 (which itself may not fit into int64). If (M + 1)
    times the number of values exceeds int64, the sums may have overflowed.

    ``value ^ (value >> 63)`` is the value itself if it is not negative, otherwise its magnitude minus 1.
    """
    largest = int64(0)
    whole = len(values) - len(values) % LANES
    for i in range(0, whole, LANES):
        a, b, c, d = values[i], values[i + 1], values[i + 2], values[i + 3]
        sums[0, ids[i]] += a
        sums[1, ids[i + 1]] += b
        sums[2, ids[i + 2]] += c
        sums[3, ids[i + 3]] += d
        ab = max(a ^ (a >> 63), b ^ (b >> 63))
        cd = max(c ^ (c >> 63), d ^ (d >> 63))
        largest = max(largest, max(ab, cd))
    for i in range(whole, len(values)):
        sums[0, ids[i]] += values[i]
        largest = max(largest, values[i] ^ (values[i] >> 63))
    return largest
