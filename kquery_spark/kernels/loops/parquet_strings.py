"""Decodes the strings of a Parquet column chunk into an Arrow layout: one buffer of bytes, and the offset of each row in it.

In data pages and in the dictionary, a string is its size in four bytes followed by its bytes. For example, "ab", "" and "c"
are stored as

    02 00 00 00 61 62   00 00 00 00   01 00 00 00 63

at the positions 4, 10 and 14: those of the bytes, so that the size is in the four bytes before a position. For each
page, the positions of the rows' strings are collected first, by walking over the sizes or by dictionary indices. Then the
bytes of the selected rows are copied.

Invariant: a position is only collected after its size was compared with the end of the page or dictionary, so the copy
needs no further check of its input.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64

from kquery_spark.kernels.loops.memory import load32
from kquery_spark.kernels.loops.parquet_page_parts import (
    are_stored,
    have_entries,
    largest_number,
    page_parts,
    range_end,
    read_indices,
    read_levels,
)
from kquery_spark.kernels.loops.parquet_pages import Bytes
from kquery_spark.kernels.loops.string_copies import COPY_SLACK, copy_string, with_more_room
from kquery_spark.kernels.parquet_page_table import (
    BODY,
    ENCODING,
    ENTRIES,
    FIRST_ENTRY,
    PLAIN,
    PLAIN_DICTIONARY,
    RAW_SIZE,
    RLE_DICTIONARY,
    SIZE,
    SIZE_BYTES,
    VALUES,
)

_MAX_OFFSET = (1 << 31) - 1
_MIN_ROOM, _MAX_ROOM = 1 << 10, 1 << 26  # limits of the buffer's initial size; it grows as needed

_Rows, _Flags, _Table = numba.int64[::1], numba.uint8[::1], numba.int64[:, ::1]
_Offsets, _Text = numba.int32[::1], numba.uint8[::1]


@numba.njit
def _write_positions(data: Any, at: Any, end: Any, count: Any, positions: Any) -> Any:
    """Write the positions of ``count`` strings that are stored one after another; False if one extends past ``end``."""
    for i in range(count):
        if end - at < SIZE_BYTES:
            return False
        size = int64(load32(data, at))
        at += SIZE_BYTES
        if size > end - at:
            return False
        positions[i] = at
        at += size
    return True


@numba.njit
def _page_positions(
    buffer: Any, at: Any, end: Any, encoding: Any, count: Any, entries: Any, indices: Any, positions: Any
) -> Any:
    """Write the positions of a page's strings, in the page itself or in the dictionary; False for malformed pages.

    count: the number of strings, without NULLs. entries: the positions of the strings of the page's dictionary.
    """
    if count == 0:
        return True
    if encoding == PLAIN:
        return _write_positions(buffer, at, end, count, positions)
    if encoding != RLE_DICTIONARY and encoding != PLAIN_DICTIONARY:
        return False
    if not read_indices(buffer, at, end, len(entries), indices[:count]):
        return False
    for i in range(count):
        positions[i] = entries[int64(indices[i])]
    return True


@numba.njit
def _dictionary_positions(dictionary: Any, pages: Any) -> Any:
    """Return whether the dictionary pages are well-formed, and if so, the positions of all their strings."""
    count, found = int64(0), int64(0)
    for number in range(len(pages)):
        count += pages[number, VALUES]
    # each string takes at least the bytes of its size, so this bounds the memory that a damaged page can request
    if count > len(dictionary) // SIZE_BYTES:
        return False, np.empty(0, np.int64)
    positions = np.empty(count, np.int64)
    for number in range(len(pages)):
        page = pages[number]
        at, values = page[BODY], page[VALUES]
        if not _write_positions(dictionary, at, at + page[SIZE], values, positions[found : found + values]):
            return False, positions
        found += values
    return True, positions


@numba.njit
def _spread_positions(positions: Any, flags: Any) -> None:
    """Move the positions of the strings to the rows whose flag is 1, and write -1 to the others, in place.

    For the positions [4, 10] and the flags [1, 0, 1] the result is [4, -1, 10].
    """
    row = int64(len(flags)) - 1
    at = int64(0)
    for i in range(len(flags)):
        at += int64(flags[i])
    while row >= 0:  # backwards, so that no position is overwritten before it is moved
        if flags[row]:
            at -= 1
            positions[row] = positions[at]
        else:
            positions[row] = -1
        row -= 1


@numba.njit
def _append(
    out: Any,
    total: Any,
    source: Any,
    positions: Any,
    rows: Any,
    is_selected: Any,
    low: Any,
    high: Any,
    first: Any,
    valid: Any,
    has_levels: Any,
    offsets: Any,
) -> Any:
    """Append the strings of rows ``low`` to ``high`` of the output, until the buffer is full.

    out, total: the buffer and its used size. source: the bytes that the positions point into. first: the first row of the
    page. Returns the first row that was not appended, the used size, the NULL count, and the size of that row's string.

    The caller replaces a full buffer. If this loop replaced it, numba would count the references to the buffer with atomic
    operations for each string, which take five times as long as copying a string of 20 bytes.
    """
    nulls, row = int64(0), low
    size: Any = int64(0)
    while row < high:
        position = positions[rows[row] - first] if is_selected else positions[row - first]
        if position < 0:
            nulls += 1
            valid[row] = 0
        else:
            size = int64(load32(source, position - SIZE_BYTES))
            # the slack is for bytes that copy_string writes after the string
            if total + size + COPY_SLACK > len(out):
                break
            if has_levels:
                valid[row] = 1
            copy_string(out, total, source, position, size)
            total += size
        offsets[row + 1] = total
        row += 1
    return row, total, nulls, size


@numba.njit
def _initial_buffer_bytes(pages: Any, entry_bytes: Any, is_selected: Any, rows: Any) -> Any:
    """Return the initial size of the output buffer: the estimated bytes of the strings plus a quarter, within limits.

    A plain page counts as its own size, and a page of indices as the average size of a dictionary entry for each value. The
    sum is scaled by the share of selected rows. entry_bytes: the average size of a dictionary entry.
    """
    total, count = int64(0), int64(1)
    for page in range(len(pages)):
        values = pages[page, VALUES]
        total += pages[page, RAW_SIZE] if pages[page, ENCODING] == PLAIN else entry_bytes * values
        count += values
    if is_selected:
        total = total // count * len(rows)
    return min(total + total // 4, int64(_MAX_ROOM)) + _MIN_ROOM


@numba.njit(
    numba.types.Tuple((int64, _Text))(
        Bytes, _Table, Bytes, _Table, numba.boolean, numba.boolean, _Rows, _Flags, _Offsets
    ),
    cache=True,
    nogil=True,
)
def decode_strings(
    data: Any,
    pages: Any,
    dictionary: Any,
    dictionary_pages: Any,
    has_levels: Any,
    is_selected: Any,
    rows: Any,
    valid: Any,
    offsets: Any,
) -> Any:
    """Decode the strings of a chunk; returns the number of NULLs (-1 for other chunks) and the buffer with their bytes.

    dictionary, dictionary_pages: decompressed bytes and the table of the dictionary pages, one for each row group that has a
    dictionary. offsets: receives one item more than there are rows; the last one is the number of bytes. The other
    parameters are those of ``decode_values``.
    """
    if not are_stored(data, pages) or not are_stored(dictionary, dictionary_pages):
        return int64(-1), np.empty(0, np.uint8)
    longest = largest_number(pages, VALUES)
    indices = np.empty(longest + 8, np.uint32)
    flags = np.empty(longest, np.uint8)
    positions = np.empty(longest, np.int64)
    is_sound, entries = _dictionary_positions(dictionary, dictionary_pages)
    if not is_sound or not have_entries(pages, len(entries)):
        return int64(-1), np.empty(0, np.uint8)
    entry_bytes = int64(0)
    if len(entries):
        entry_bytes = dictionary_pages[:, SIZE].sum() // len(entries)
    out = np.empty(_initial_buffer_bytes(pages, entry_bytes, is_selected, rows), np.uint8)
    first, low, nulls, total = int64(0), int64(0), int64(0), int64(0)
    offsets[0] = 0
    for number in range(len(pages)):
        page = pages[number]
        page_rows = page[VALUES]
        encoding = page[ENCODING]
        high = range_end(rows, low, first + page_rows) if is_selected else first + page_rows
        if high > low:
            at, end, level_at, level_end = page_parts(data, page, has_levels)
            if at < 0:
                return int64(-1), out
            page_flags = flags[:page_rows]
            valid_rows = read_levels(data, level_at, level_end, has_levels, page_flags)
            page_entries = entries[page[FIRST_ENTRY] : page[FIRST_ENTRY] + page[ENTRIES]]
            if valid_rows < 0 or not _page_positions(
                data, at, end, encoding, valid_rows, page_entries, indices, positions
            ):
                return int64(-1), out
            if valid_rows < page_rows:
                _spread_positions(positions, page_flags)
            source = data if encoding == PLAIN else dictionary  # what the positions point into
            while True:
                low, total, new_nulls, size = _append(
                    out,
                    total,
                    source,
                    positions,
                    rows,
                    is_selected,
                    low,
                    high,
                    first,
                    valid,
                    has_levels,
                    offsets,
                )
                nulls += new_nulls
                if low == high:
                    break
                if total + size > _MAX_OFFSET:
                    return int64(-1), out
                out = with_more_room(out, total, size + COPY_SLACK, int64(_MAX_OFFSET))
        low = high
        first += page_rows
    return (nulls if not is_selected or low == len(rows) else int64(-1)), out[:total]
