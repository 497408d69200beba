"""Decodes fixed-width values, or dictionary indices, of a Parquet column chunk, for all rows or for selected rows.

One call of ``decode_values`` decodes a chunk. For each page with selected rows:

    decompressed bytes -> definition levels -> dictionary indices -> values of the selected rows

Which loops run for a page depends on its NULLs and on the selection:

    no NULLs, all rows        _decode_all writes directly to the output
    no NULLs, few rows        _decode_selected looks up each selected row by its offset
    no NULLs, many rows       _decode_all decodes the page, _copy_selected copies the selected values
    NULLs, all rows           _decode_all decodes the values that are present, _spread_to_rows moves them to their rows
    NULLs, selected rows      _decode_all, _spread_to_rows, _copy_selected

Invariant: the loads and stores of ``memory.py`` have no bounds checks. Before each loop, the sizes, bit widths and the
largest index are compared with the arrays. A function returns -1 or False if a check fails, and pyarrow then reads the
chunk. Values are copied as 1, 4, 8, or 16 bytes, whatever their type is, so that one compiled function serves all types.
Values that Arrow stores otherwise are converted before, by ``parquet_numbers.py``.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint8, uint64, uintp

from kquery_spark.kernels.loops.memory import (
    copy_bytes,
    load32,
    load64,
    store32,
    store64,
)
from kquery_spark.kernels.loops.parquet_page_parts import (
    are_stored,
    have_entries,
    largest_number,
    page_parts,
    range_end,
    read_indices_at,
    read_levels,
)
from kquery_spark.kernels.loops.parquet_pages import Bytes
from kquery_spark.kernels.loops.parquet_runs import MAX_BITS, next_run, repeated_integer, unpack_run
from kquery_spark.kernels.parquet_page_table import (
    ENCODING,
    ENTRIES,
    FIRST_ENTRY,
    PLAIN,
    PLAIN_DICTIONARY,
    RLE_DICTIONARY,
    VALUES,
)

_MIN_ROWS_PER_SELECTED_ROW = 12  # if at most one row in 12 is selected, rows are looked up one by one
_INDEX_BYTES = 4
_BLOCK = 1024  # rows that are unpacked at a time; a multiple of eight, since packed integers come in groups of eight
_SLACK = 16

_Rows, _Flags, _Table = numba.int64[::1], numba.uint8[::1], numba.int64[:, ::1]


@numba.njit
def _copy_entries(dictionary: Any, indices: Any, count: Any, width: Any, out: Any, to: Any) -> None:
    """Copy the dictionary's values at the indices to ``out``; for width 0, copy the indices themselves.

    The caller has compared the largest index with the number of values in the dictionary.
    """
    if width == 8:
        for i in range(count):
            store64(out, to + 8 * i, load64(dictionary, 8 * int64(indices[i])))
    elif width == 4:
        for i in range(count):
            store32(out, to + 4 * i, load32(dictionary, 4 * int64(indices[i])))
    elif width == 16:
        for i in range(count):
            at = 16 * int64(indices[i])
            store64(out, to + 16 * i, load64(dictionary, at))
            store64(out, to + 16 * i + 8, load64(dictionary, at + 8))
    elif width == 1:
        for i in range(count):
            out[to + i] = dictionary[int64(indices[i])]
    else:
        for i in range(count):
            store32(out, to + 4 * i, uint64(indices[i]))


@numba.njit
def _decode_indexed(
    data: Any,
    at: Any,
    end: Any,
    count: Any,
    width: Any,
    dictionary: Any,
    entries: Any,
    block: Any,
    out: Any,
    to: Any,
) -> Any:
    """Decode ``count`` dictionary indices, and copy their values to ``out`` from byte ``to`` on; False for malformed pages.

    block: scratch space for the indices of ``_BLOCK`` rows, which stay in the cache until their values are copied. It is
    filled from as many runs as it takes, because the runs of a column with few values often have only about ten rows.
    """
    if at >= end or data[at] > uint8(MAX_BITS):
        return False
    bits, at, end, left = uintp(data[at]), uintp(at) + uintp(1), uintp(end), uintp(count)
    slot = width if width else int64(_INDEX_BYTES)
    filled = largest = uintp(0)
    while left > uintp(0):
        run, is_packed, start, at = next_run(data, at, end, bits)
        if run == uintp(0):
            return False
        length = min(run, left)
        left -= length
        index = uintp(0) if is_packed else repeated_integer(data, start, bits)
        largest = max(largest, index)
        while length > uintp(0):
            step = min(length, uintp(_BLOCK) - filled)
            if is_packed:
                # If the run continues in the next block, this step is a whole number of groups of eight, because ``start``
                # can only move by groups. The step is 0 if fewer than eight rows of the block are free.
                step = step if step == length else step & ~uintp(7)
                if step > uintp(0):
                    largest = max(largest, unpack_run(data, start, step, bits, block, filled))
                start += (step >> uintp(3)) * bits
            else:
                for i in range(step):
                    block[filled + uintp(i)] = index
            filled += step
            length -= step
            if length > uintp(0) or left == uintp(0):
                if largest >= uint64(entries):
                    return False
                _copy_entries(dictionary, block, int64(filled), width, out, to)
                to += int64(filled) * slot
                filled = uintp(0)
    return True


@numba.njit
def _decode_all(
    data: Any,
    at: Any,
    end: Any,
    encoding: Any,
    count: Any,
    width: Any,
    dictionary: Any,
    entries: Any,
    indices: Any,
    out: Any,
    to: Any,
) -> Any:
    """Decode ``count`` values of a page to ``out`` from byte ``to`` on; False for malformed pages and other encodings."""
    if count == 0:
        return True
    if encoding == PLAIN:
        if width == 0 or count * width > end - at:
            return False
        copy_bytes(out, to, data, at, count * width)
        return True
    if encoding in (RLE_DICTIONARY, PLAIN_DICTIONARY):
        return _decode_indexed(data, at, end, count, width, dictionary, entries, indices, out, to)
    return False


@numba.njit
def _decode_selected(
    data: Any,
    at: Any,
    end: Any,
    encoding: Any,
    count: Any,
    width: Any,
    dictionary: Any,
    entries: Any,
    indices: Any,
    rows: Any,
    low: Any,
    high: Any,
    first: Any,
    out: Any,
    to: Any,
) -> Any:
    """Decode ``rows[low:high]`` of a page without NULLs; False for malformed pages and other encodings.

    first, count: the page's first row and its number of rows.
    """
    if encoding == PLAIN:
        if width == 0 or count * width > end - at:
            return False
        _copy_selected(data, at, rows, low, high, first, width, out, to)
        return True
    if encoding not in (RLE_DICTIONARY, PLAIN_DICTIONARY):
        return False
    if not read_indices_at(data, at, end, entries, rows, low, high, first, indices):
        return False
    _copy_entries(dictionary, indices, high - low, width, out, to)
    return True


@numba.njit
def _copy_selected(
    values: Any, at: Any, rows: Any, low: Any, high: Any, first: Any, width: Any, out: Any, to: Any
) -> None:
    """Copy the values of ``rows[low:high]`` to ``out``. The value of row ``first`` is at byte ``at`` of ``values``."""
    if width == 8:
        for k in range(high - low):
            store64(out, to + 8 * k, load64(values, at + 8 * (rows[low + k] - first)))
    elif width == 4:
        for k in range(high - low):
            store32(out, to + 4 * k, load32(values, at + 4 * (rows[low + k] - first)))
    elif width == 16:
        for k in range(high - low):
            value = at + 16 * (rows[low + k] - first)
            store64(out, to + 16 * k, load64(values, value))
            store64(out, to + 16 * k + 8, load64(values, value + 8))
    else:
        for k in range(high - low):
            out[to + k] = values[at + rows[low + k] - first]


@numba.njit
def _spread_to_rows(packed: Any, flags: Any, count: Any, width: Any, out: Any, to: Any) -> None:
    """Move packed values to the rows whose flag is 1, and write zeros to the other rows.

    There is no branch: ``-flag`` is a mask of all ones or all zeros, and the position advances by the flag. So the loop also
    loads a value for NULL rows after the last valid one, for which ``packed`` needs room for one more value.
    """
    at = int64(0)
    if width == 8:
        for i in range(count):
            flag = int64(flags[i])
            store64(out, to + 8 * i, load64(packed, at) & uint64(-flag))
            at += 8 * flag
    elif width == 4:
        for i in range(count):
            flag = int64(flags[i])
            store32(out, to + 4 * i, load32(packed, at) & uint64(-flag))
            at += 4 * flag
    elif width == 16:
        for i in range(count):
            flag = int64(flags[i])
            store64(out, to + 16 * i, load64(packed, at) & uint64(-flag))
            store64(out, to + 16 * i + 8, load64(packed, at + 8) & uint64(-flag))
            at += 16 * flag
    else:
        for i in range(count):
            flag = flags[i]
            out[to + i] = packed[at] & (uint8(0) - flag)
            at += int64(flag)


@numba.njit(
    int64(Bytes, _Table, Bytes, int64, int64, numba.boolean, numba.boolean, _Rows, _Flags, _Flags),
    cache=True,
    nogil=True,
)
def decode_values(
    data: Any,
    pages: Any,
    dictionary: Any,
    entries: Any,
    width: Any,
    has_levels: Any,
    is_selected: Any,
    rows: Any,
    valid: Any,
    out: Any,
) -> Any:
    """Decode the fixed-width values, or the dictionary indices, of a chunk; returns the number of NULLs, or -1.

    data, pages: the decompressed bytes and the table of the data pages. dictionary, entries: the bytes of the concatenated
    dictionaries and the number of their values. width: the bytes of a value, 1, 4, 8, or 16; 0 to write the 32-bit
    dictionary indices themselves, which is possible for a single row group only. has_levels: whether the column can be NULL.
    is_selected: whether ``rows``, positions in rising order, are read instead of all rows. valid: receives a flag for each
    row if the column can be NULL. out: receives the values, zero for NULL. Returns -1 for malformed pages and other
    encodings.
    """
    if not are_stored(data, pages) or not have_entries(pages, entries) or entries * width > len(dictionary):
        return int64(-1)
    if width == 0 and largest_number(pages, FIRST_ENTRY) > 0:
        return int64(-1)
    slot = width if width else int64(_INDEX_BYTES)  # bytes of a value in the output
    longest = largest_number(pages, VALUES)
    # Scratch space. indices: of a block, or of the selected rows of a page. For one page each: the NULL flags, ``packed``
    # for the values that are not NULL, and ``whole`` for the values of all rows.
    indices = np.empty(max(longest, int64(_BLOCK)) + 8, np.uint32)
    flags = np.empty(longest, np.uint8)
    packed = np.empty((longest + 1) * slot + _SLACK if has_levels else int64(_SLACK), np.uint8)
    whole = np.empty(longest * slot + _SLACK if is_selected else int64(_SLACK), np.uint8)
    first, low, nulls = int64(0), int64(0), int64(0)
    # ``first`` is the page's first row. The page's values are written to positions ``low`` to ``high`` of the output.
    for number in range(len(pages)):
        page = pages[number]
        count = page[VALUES]
        high = range_end(rows, low, first + count) if is_selected else first + count
        if high == low:
            first += count
            continue
        at, end, level_at, level_end = page_parts(data, page, has_levels)
        if at < 0:
            return int64(-1)
        page_flags = flags[:count]
        valid_rows = read_levels(data, level_at, level_end, has_levels, page_flags)
        if valid_rows < 0:
            return int64(-1)
        encoding, page_entries = page[ENCODING], page[ENTRIES]
        values = dictionary[page[FIRST_ENTRY] * width :]
        to = low * slot
        if valid_rows == count:
            if has_levels:
                valid[low:high] = 1
            if not is_selected:
                if not _decode_all(
                    data, at, end, encoding, count, width, values, page_entries, indices, out, to
                ):
                    return int64(-1)
            elif (high - low) * _MIN_ROWS_PER_SELECTED_ROW <= count:
                if not _decode_selected(
                    data,
                    at,
                    end,
                    encoding,
                    count,
                    width,
                    values,
                    page_entries,
                    indices,
                    rows,
                    low,
                    high,
                    first,
                    out,
                    to,
                ):
                    return int64(-1)
            else:
                if not _decode_all(
                    data, at, end, encoding, count, width, values, page_entries, indices, whole, int64(0)
                ):
                    return int64(-1)
                _copy_selected(whole, int64(0), rows, low, high, first, slot, out, to)
        else:
            if not _decode_all(
                data, at, end, encoding, valid_rows, width, values, page_entries, indices, packed, int64(0)
            ):
                return int64(-1)
            if is_selected:
                _spread_to_rows(packed, page_flags, count, slot, whole, int64(0))
                _copy_selected(whole, int64(0), rows, low, high, first, slot, out, to)
                for k in range(low, high):
                    flag = page_flags[rows[k] - first]
                    valid[k] = flag
                    nulls += 1 - int64(flag)
            else:
                _spread_to_rows(packed, page_flags, count, slot, out, to)
                valid[low:high] = page_flags
                nulls += count - valid_rows
        low = high
        first += count
    return nulls if not is_selected or low == len(rows) else int64(-1)
