"""Decodes the dictionary indices of the chunks of a column, and finds the rows whose index is selected.

The indices have at most 16 bits, and the index after the last dictionary entry stands for NULL. For the dictionary
['a', 'b'] and the rows 'b', NULL, 'a' the indices are 1, 2, 0. With several row groups, the dictionaries are concatenated. A
page stores indices into the dictionary of its own row group, and the functions add its ``FIRST_ENTRY``
(``parquet_page_table.py``), so their results are indices into the concatenated dictionaries.

Each function over a chunk takes its decompressed bytes and the table of its data pages, and returns -1 for malformed pages.
The caller then lets pyarrow read the chunk, which reports the damage.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint8, uint16, uint64, uintp

from kquery_spark.kernels.loops.memory import load64
from kquery_spark.kernels.loops.parquet_levels import replace_rows_by_value_positions
from kquery_spark.kernels.loops.parquet_page_parts import (
    are_stored,
    have_entries,
    largest_number,
    page_parts,
    range_end,
    read_indices,
    read_indices_at,
    read_levels,
)
from kquery_spark.kernels.loops.parquet_pages import Bytes
from kquery_spark.kernels.loops.parquet_runs import NULL_ROW, filter_runs
from kquery_spark.kernels.parquet_page_table import ENTRIES, FIRST_ENTRY, VALUES

_ONE, _EIGHT = uintp(1), uintp(8)
_EIGHT_VALID = uint64(0x0101010101010101)
_MAX_FILTERED_BITS = uint8(16)
_PAST_THE_END = uint8(2)  # the state of an index past the end of the dictionary, for ``filter_runs``

_Table, _Flags, _Indices, _Rows = numba.int64[:, ::1], numba.uint8[::1], numba.uint16[::1], numba.int64[::1]


def _compiled(*arguments: Any) -> Any:
    """Compile a function for these types at import, or load it from the cache; it runs without the GIL."""
    return numba.njit(int64(*arguments), cache=True, nogil=True)


@numba.njit
def _spread(packed: Any, flags: Any, null: Any, out: Any) -> None:
    """Move the packed indices to the rows whose flag is 1, and write ``null`` to the others.

    For the indices [7, 8, x] and the flags [1, 0, 1] the result is [7, null, 8]. ``packed`` needs one item more (x) than
    there are valid rows, since the compiled loop may also read ``packed[at]`` for NULL rows after the last valid one.
    """
    at = row = uintp(0)
    count = uintp(len(out))
    while row < count:
        if row + _EIGHT <= count and load64(flags, row) == _EIGHT_VALID:  # the usual case if NULLs are rare
            for i in range(8):
                out[row + uintp(i)] = packed[at + uintp(i)]
            at += _EIGHT
            row += _EIGHT
        else:
            for _ in range(min(_EIGHT, count - row)):
                out[row] = packed[at] if flags[row] else null
                at += uintp(flags[row])
                row += _ONE


@numba.njit
def _read_page_indices(data: Any, at: Any, end: Any, page: Any, out: Any) -> Any:
    """Decode the indices of a page, without NULLs, until ``out`` is full; False for a malformed page."""
    if len(out) == 0:
        return True
    if not read_indices(data, at, end, page[ENTRIES], out):
        return False
    first = uint16(page[FIRST_ENTRY])
    if first:
        for i in range(len(out)):
            out[i] += first
    return True


@numba.njit
def _page_indices(
    data: Any,
    at: Any,
    end: Any,
    page: Any,
    valid_rows: Any,
    entries: Any,
    flags: Any,
    packed: Any,
    out: Any,
) -> Any:
    """Decode the indices of a page's rows to ``out``; False for a malformed page.

    valid_rows, flags: the number of rows that are not NULL, and a flag for each row if some are NULL. packed: has one item
    more than the page has rows; receives the indices before they are spread over the rows.
    """
    if valid_rows == len(out):
        return _read_page_indices(data, at, end, page, out)
    if not _read_page_indices(data, at, end, page, packed[:valid_rows]):
        return False
    _spread(packed, flags, entries, out)
    return True


@_compiled(Bytes, _Table, numba.boolean, uint16, _Indices)
def decode_indices(data: Any, pages: Any, has_levels: Any, entries: Any, out: Any) -> Any:
    """Decode the indices of all rows of a chunk to ``out``, ``entries`` for NULL; returns the number of NULLs, or -1.

    data, pages: the decompressed bytes and the table of the data pages. has_levels: whether the column can be NULL. entries:
    the number of values in all dictionaries together.
    """
    if not are_stored(data, pages) or not have_entries(pages, int64(entries)):
        return int64(-1)
    longest = largest_number(pages, VALUES)
    page_flags, packed = np.empty(longest, np.uint8), np.zeros(longest + 1, np.uint16)
    first = nulls = int64(0)
    for number in range(len(pages)):
        page = pages[number]
        count = page[VALUES]
        flags = page_flags[:count]
        at, end, level_at, level_end = page_parts(data, page, has_levels)
        valid_rows = read_levels(data, level_at, level_end, has_levels, flags) if at >= 0 else int64(-1)
        if (
            valid_rows < 0
            or first + count > len(out)
            or not _page_indices(
                data, at, end, page, valid_rows, entries, flags, packed, out[first : first + count]
            )
        ):
            return int64(-1)
        nulls += count - valid_rows
        first += count
    return nulls


@_compiled(Bytes, _Table, numba.boolean, uint16, _Rows, _Indices)
def decode_selected_indices(data: Any, pages: Any, has_levels: Any, entries: Any, rows: Any, out: Any) -> Any:
    """Look up the indices of selected rows, which are in rising order; returns 0, or -1 for malformed pages.

    Pages and runs without selected rows are skipped, so this detects less damage than ``decode_indices``. The other
    parameters are those of ``decode_indices``.
    """
    if not are_stored(data, pages) or not have_entries(pages, int64(entries)):
        return int64(-1)
    page_rows = np.empty(len(rows), np.int64)
    first, low = int64(0), int64(0)
    for number in range(len(pages)):
        page = pages[number]
        high = range_end(rows, low, first + page[VALUES])
        if high > low:
            selected = page_rows[low:high]
            for k in range(low, high):
                selected[k - low] = rows[k] - first
            at, end, level_at, level_end = page_parts(data, page, has_levels)
            if at < 0 or (
                has_levels
                and not replace_rows_by_value_positions(data, uintp(level_at), uintp(level_end), selected)
            ):
                return int64(-1)
            found = out[low:high]
            page_entries = page[ENTRIES]
            if not read_indices_at(
                data, at, end, page_entries, selected, int64(0), high - low, int64(0), found
            ):
                return int64(-1)
            if page_entries != int64(entries):
                first_entry = uint16(page[FIRST_ENTRY])
                for k in range(len(found)):
                    found[k] = entries if selected[k] == NULL_ROW else found[k] + first_entry
        low = high
        first += page[VALUES]
    return int64(0 if low == len(rows) else -1)


@numba.njit
def _filter(indices: Any, selected: Any, row: Any, out: Any) -> Any:
    """Write the numbers of the rows, from ``row`` on, whose index is selected; returns how many there are.

    As in ``filter_runs``, each row number is written before the flag is known.
    """
    count = uintp(0)
    for i in range(len(indices)):
        out[count] = row + int64(i)
        count += uintp(selected[uintp(indices[uintp(i)])])
    return int64(count)


@_compiled(Bytes, _Table, numba.boolean, _Flags, _Rows)
def filter_chunk(data: Any, pages: Any, has_levels: Any, selected: Any, out: Any) -> Any:
    """Write the numbers of the rows of a chunk whose value is selected; returns how many there are, -1 for malformed pages.

    selected: a flag for each entry of the dictionary; the last flag is that of NULL. out: has one item more than the chunk
    has rows. The other parameters are those of ``decode_indices``.

    Without NULLs, indices are compared while they are unpacked. With NULLs, they must be assigned to rows first.
    """
    if not are_stored(data, pages) or not have_entries(pages, int64(len(selected) - 1)):
        return int64(-1)
    entries = uint16(len(selected) - 1)
    states = np.full(1 << 16, _PAST_THE_END, np.uint8)  # by index in the page's own dictionary
    state_first, state_entries = int64(0), int64(0)
    longest = largest_number(pages, VALUES)
    page_flags, packed = np.empty(longest, np.uint8), np.zeros(longest + 1, np.uint16)
    page_indices = np.empty(longest, np.uint16)
    first, hits = int64(0), int64(0)
    for number in range(len(pages)):
        page = pages[number]
        count = page[VALUES]
        flags, indices = page_flags[:count], page_indices[:count]
        at, end, level_at, level_end = page_parts(data, page, has_levels)
        if at < 0 or first + count >= len(out):
            return int64(-1)
        if page[FIRST_ENTRY] != state_first or page[ENTRIES] != state_entries:
            states[:state_entries] = _PAST_THE_END
            state_first, state_entries = page[FIRST_ENTRY], page[ENTRIES]
            states[:state_entries] = selected[state_first : state_first + state_entries]
        valid_rows = read_levels(data, level_at, level_end, has_levels, flags)
        page_hits = int64(-1)
        if valid_rows == count:
            if at < end and data[at] <= _MAX_FILTERED_BITS:
                page_hits = filter_runs(
                    data,
                    uintp(at + 1),
                    uintp(end),
                    uintp(data[at]),
                    uintp(count),
                    states,
                    uintp(first),
                    out[hits:],
                )
        elif valid_rows >= 0 and _page_indices(
            data, at, end, page, valid_rows, entries, flags, packed, indices
        ):
            page_hits = _filter(indices, selected, first, out[hits:])
        if page_hits < 0:
            return int64(-1)
        hits += page_hits
        first += count
    return hits


@_compiled(_Indices, _Flags, _Rows)
def filter_indices(indices: Any, selected: Any, out: Any) -> Any:
    """Write the numbers of the rows whose index is selected to ``out``, which has one item more than there are rows.

    Returns how many there are.
    """
    return _filter(indices, selected, int64(0), out)


@_compiled(_Indices, _Flags, _Rows, _Rows)
def filter_selected_rows(indices: Any, selected: Any, rows: Any, out: Any) -> Any:
    """Write those of ``rows`` whose index is selected to ``out``, which has one item more; returns how many there are."""
    count = uintp(0)
    for i in range(len(rows)):
        row = rows[uintp(i)]
        out[count] = row
        count += uintp(selected[uintp(indices[uintp(row)])])
    return int64(count)
