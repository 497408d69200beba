"""Locates the levels and the values in data pages, and decodes the levels and the dictionary indices of a page.

    version 1:  [size of the levels, 4 bytes] [levels] [values]      without levels: [values]
    version 2:  [levels] [values]                                    the header has the size of the levels

If the values are dictionary indices, they consist of the bit width in one byte and of runs (``parquet_runs.py``).

Invariants: ``are_stored`` is called first for a page table, so that the ranges of all pages lie within the array, and
``have_entries`` before indices are looked up, so that the dictionary of each page lies within the concatenated ones.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import int64, uint8, uint64, uintp

from kquery_spark.kernels.loops.memory import load32
from kquery_spark.kernels.loops.parquet_levels import are_all_ones, unpack_flags
from kquery_spark.kernels.loops.parquet_runs import (
    MAX_BITS,
    unpack_indices,
    unpack_indices_at,
)
from kquery_spark.kernels.parquet_page_table import (
    BODY,
    DATA_V2,
    ENTRIES,
    FIRST_ENTRY,
    KIND,
    LEVEL_BYTES,
    SIZE,
    SIZE_BYTES,
    VALUES,
)


@numba.njit
def are_stored(data: Any, pages: Any) -> Any:
    """True if the positions and sizes of all pages in the table lie within the array of decompressed bytes."""
    for page in range(len(pages)):
        at, size, level_bytes = pages[page, BODY], pages[page, SIZE], pages[page, LEVEL_BYTES]
        if min(at, size, level_bytes, pages[page, VALUES]) < 0 or at + size > len(data) or level_bytes > size:
            return False
    return True


@numba.njit
def have_entries(pages: Any, entries: Any) -> Any:
    """True if the dictionaries of all pages lie within the concatenated dictionaries, which have ``entries`` values."""
    for page in range(len(pages)):
        first, count = pages[page, FIRST_ENTRY], pages[page, ENTRIES]
        if min(first, count) < 0 or count > entries or first > entries - count:
            return False
    return True


@numba.njit
def largest_number(pages: Any, column: Any) -> Any:
    """Return the largest number in a column of the page table; 0 for an empty table."""
    largest = int64(0)
    for page in range(len(pages)):
        largest = max(largest, pages[page, column])
    return largest


@numba.njit
def skip_page(page: Any, to: Any) -> None:
    """Give a page that is not needed the position of the next needed one in a copy of the pages, and no bytes."""
    page[BODY], page[SIZE], page[LEVEL_BYTES] = to, 0, 0


@numba.njit
def page_parts(data: Any, page: Any, has_levels: Any) -> Any:
    """Return the start (-1 for malformed pages) and end of a page's values, and the start and end of its levels."""
    begin = page[BODY]
    end = begin + page[SIZE]
    if page[KIND] == DATA_V2:
        return begin + page[LEVEL_BYTES], end, begin, begin + page[LEVEL_BYTES]
    if not has_levels:
        return begin, end, begin, begin
    if end - begin < SIZE_BYTES:
        return int64(-1), end, begin, begin
    level_at = begin + SIZE_BYTES
    level_end = level_at + int64(load32(data, begin))
    return (level_end if level_end <= end else int64(-1)), end, level_at, level_end


@numba.njit
def read_levels(data: Any, at: Any, end: Any, has_levels: Any, flags: Any) -> Any:
    """Decode the levels of a page; returns the number of rows that are not NULL, or -1 for malformed levels.

    flags: receives a flag for each row, but is not written if there is certainly no NULL.
    """
    if not has_levels or are_all_ones(data, uintp(at), uintp(end), uintp(len(flags))):
        return int64(len(flags))
    return unpack_flags(data, uintp(at), uintp(end), flags)


@numba.njit
def read_indices(data: Any, at: Any, end: Any, entries: Any, out: Any) -> Any:
    """Decode dictionary indices until ``out`` is full; False for a malformed page, or for an index without an entry."""
    if at >= end or data[at] > uint8(MAX_BITS):
        return False
    bits = uintp(data[at])
    return unpack_indices(data, uintp(at + 1), uintp(end), bits, uint64(entries), out)


@numba.njit
def read_indices_at(
    data: Any, at: Any, end: Any, entries: Any, rows: Any, low: Any, high: Any, first: Any, out: Any
) -> Any:
    """Look up the dictionary indices at the positions ``rows[low:high] - first``; False as in ``read_indices``."""
    if at >= end or data[at] > uint8(MAX_BITS):
        return False
    bits = uintp(data[at])
    return unpack_indices_at(
        data, uintp(at + 1), uintp(end), bits, uint64(entries), rows, low, high, first, out
    )


@numba.njit
def range_end(rows: Any, low: Any, limit: Any) -> Any:
    """Find the position of the first row number that is not below ``limit``, by a binary search from ``low`` on."""
    high = int64(len(rows))
    while low < high:
        middle = (low + high) >> 1
        if rows[middle] < limit:
            low = middle + 1
        else:
            high = middle
    return low
