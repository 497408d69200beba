"""Decodes fixed-width values, or dictionary indices, of a Parquet column chunk, for all rows or for selected rows.

One call of ``values`` decodes a chunk. For each page with selected rows:

    decompressed bytes -> definition levels -> dictionary indices -> values of the selected rows

Which loops run for a page depends on its NULLs and on the selection:

    no NULLs, all rows        _decode_all writes directly to the output
    no NULLs, few rows        _decode_some looks up each selected row by its offset
    no NULLs, many rows       _decode_all decodes the page, _pick copies the selected values
    NULLs, all rows           _decode_all decodes the values that are present, _spread moves them to their rows
    NULLs, selected rows      _decode_all, _spread, _pick

Invariant: the loads and stores of ``memory.py`` have no bounds checks. Before each loop, the sizes, bit widths and the
largest index are compared with the arrays. A function returns -1 or False if a check fails, and pyarrow then reads the
chunk. Values are copied as four or eight bytes, whatever their type is, so that one compiled function serves all types.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint8, uint32, uint64, uintp

from kquery_spark.kernels.loops.memory import (
    copy_bytes,
    load32,
    load64,
    store32,
    store64,
)
from kquery_spark.kernels.loops.parquet import flags_of
from kquery_spark.kernels.loops.parquet_pages import Bytes, are_all_present, varint
from kquery_spark.kernels.parquet_page_table import (
    BODY,
    DATA_V2,
    ENCODING,
    KIND,
    LEVEL_BYTES,
    PLAIN,
    PLAIN_DICTIONARY,
    RLE_DICTIONARY,
    SIZE,
    VALUES,
)

MAX_BITS = 32  # the largest bit width of a dictionary index
_MIN_ROWS_PER_SELECTED_ROW = 12  # if at most one row in 12 is selected, rows are looked up one by one
_LENGTH = 4  # the number of bytes of a size, which precedes the levels in pages of version 1
_WORD = 8
_SLACK = 16
_MAX_OFFSET = (1 << 31) - 1

_Rows, _Flags, _Table = numba.int64[::1], numba.uint8[::1], numba.int64[:, ::1]


@numba.njit(inline="always")
def _index_at(data: Any, at: Any, number: Any, bits: Any) -> Any:
    """Read integer number ``number`` of those packed with ``bits`` bits from ``at`` on; the caller checks that it exists.

    For example, number 3 with 12 bits begins at bit 36: in byte 4, after its lower 4 bits, which are skipped. One load
    suffices for at most 7 skipped bits and 32 bits. Near the end of the array the bytes are read one by one instead.
    """
    bit = number * bits
    byte, skipped = at + (bit >> 3), uint64(bit & 7)
    if byte + _WORD <= len(data):
        return (load64(data, byte) >> skipped) & ((uint64(1) << uint64(bits)) - uint64(1))
    word, have = uint64(0), int64(0)
    while have < bits + (bit & 7):
        word |= uint64(data[byte]) << uint64(have)
        byte += 1
        have += 8
    return (word >> skipped) & ((uint64(1) << uint64(bits)) - uint64(1))


@numba.njit(inline="always")
def _repeated_index(data: Any, at: Any, bits: Any) -> Any:
    """Read the integer of a repeated run, which is stored in as many whole bytes as ``bits`` need."""
    word = uint64(0)
    for i in range((bits + 7) >> 3):
        word |= uint64(data[at + i]) << uint64(8 * i)
    return word


@numba.njit
def _unpack_groups(data: Any, at: Any, groups: Any, bits: Any, out: Any, to: Any) -> Any:
    """Unpack groups of eight integers of at most 32 bits; returns the largest one.

    A group of eight has ``bits`` bytes. Up to 8 bits, it fits into one load. Up to 16 bits, it takes two loads of four
    integers; the second one begins at bit ``4 * bits``, which for an odd width is in the middle of a byte (``odd`` skips
    four bits). Wider integers take a load each. The last load of a group begins at byte ``7 * bits / 8``, at most 28, so
    all loads end at most 36 bytes after the start of the group; the caller checks this for the last group.
    """
    largest = uint64(0)
    width, mask = uint64(bits), (uint64(1) << uint64(bits)) - uint64(1)
    if bits <= 8:
        for i in range(groups):
            word = load64(data, at + i * bits)
            for j in range(8):
                index = (word >> (uint64(j) * width)) & mask
                out[to + 8 * i + j] = index
                largest = max(largest, index)
    elif bits <= 16:
        half, odd = bits >> 1, uint64((bits & 1) << 2)
        for i in range(groups):
            first = load64(data, at + i * bits)
            second = load64(data, at + i * bits + half) >> odd
            for j in range(4):
                index = (first >> (uint64(j) * width)) & mask
                out[to + 8 * i + j] = index
                largest = max(largest, index)
            for j in range(4):
                index = (second >> (uint64(j) * width)) & mask
                out[to + 8 * i + 4 + j] = index
                largest = max(largest, index)
    else:
        for i in range(groups):
            for j in range(8):
                bit = j * bits
                index = (load64(data, at + i * bits + (bit >> 3)) >> uint64(bit & 7)) & mask
                out[to + 8 * i + j] = index
                largest = max(largest, index)
    return int64(largest)


@numba.njit
def unpack_indices(data: Any, at: Any, end: Any, bits: Any, count: Any, out: Any) -> Any:
    """Decode ``count`` integers of the RLE / bit-packing hybrid to ``out``; returns the largest one, -1 for malformed runs.

    ``loops/parquet.py`` describes the encoding. Returning the largest integer lets the caller compare all indices with the
    size of the dictionary at once, before it looks up any of them.
    """
    done, largest = int64(0), int64(0)
    while done < count:
        header, at = varint(data, at, end)
        run = header >> 1
        if run <= 0 or run > _MAX_OFFSET or at > end:
            return int64(-1)
        if header & 1:
            length = min(run * 8, count - done)
            if run * bits > end - at:  # a run is complete, also where its last values belong to no row
                return int64(-1)
            groups = length >> 3
            # groups that are too close to the end of the array for the loads of _unpack_groups are decoded one by one
            while groups > 0 and at + (groups - 1) * bits + 36 > len(data):
                groups -= 1
            if bits == 0:  # a dictionary with one value: all indices are 0, and a group has no bytes to load
                groups = int64(0)
            largest = max(largest, _unpack_groups(data, at, groups, bits, out, done))
            for i in range(8 * groups, length):
                index = _index_at(data, at, i, bits)
                out[done + i] = index
                largest = max(largest, int64(index))
            at += run * bits
        else:
            length = min(run, count - done)
            if ((bits + 7) >> 3) > end - at:
                return int64(-1)
            index = _repeated_index(data, at, bits)
            out[done : done + length] = uint32(index)
            largest = max(largest, int64(index))
            at += (bits + 7) >> 3
        done += length
    return largest


@numba.njit
def unpack_indices_at(
    data: Any, at: Any, end: Any, bits: Any, rows: Any, low: Any, high: Any, first: Any, out: Any
) -> Any:
    """Look up single integers of the RLE / bit-packing hybrid; returns the largest one, -1 for malformed runs.

    Their positions are ``rows[low:high] - first``, in rising order. The headers of all runs up to the last position are
    read, but runs that contain none of the positions are not decoded.
    """
    run_start, run_end, largest = int64(0), int64(0), int64(0)
    start, is_packed = at, False
    for k in range(low, high):
        row = rows[k] - first
        while row >= run_end:
            header, start = varint(data, at, end)
            run = header >> 1
            if run <= 0 or start > end or run > _MAX_OFFSET:
                return int64(-1)
            is_packed = header & 1 == 1
            run_start = run_end
            run_end += run * 8 if is_packed else run
            at = start + (run * bits if is_packed else (bits + 7) >> 3)
            if at > end:
                return int64(-1)
        number = row - run_start
        index = _index_at(data, start, number, bits) if is_packed else _repeated_index(data, start, bits)
        out[k - low] = index
        largest = max(largest, int64(index))
    return largest


@numba.njit
def _look_up(dictionary: Any, indices: Any, count: Any, width: Any, out: Any, to: Any) -> None:
    """Copy the dictionary's values at the indices to ``out``; for width 0, copy the indices themselves.

    The caller has compared the largest index with the number of values in the dictionary.
    """
    if width == 8:
        for i in range(count):
            store64(out, to + 8 * i, load64(dictionary, 8 * int64(indices[i])))
    elif width == 4:
        for i in range(count):
            store32(out, to + 4 * i, load32(dictionary, 4 * int64(indices[i])))
    else:
        for i in range(count):
            store32(out, to + 4 * i, uint64(indices[i]))


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
        if at >= end or data[at] > uint8(MAX_BITS):
            return False
        largest = unpack_indices(data, at + 1, end, int64(data[at]), count, indices)
        if largest < 0 or largest >= entries:
            return False
        _look_up(dictionary, indices, count, width, out, to)
        return True
    return False


@numba.njit
def _decode_some(
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
        _pick(data, at, rows, low, high, first, width, out, to)
        return True
    if encoding not in (RLE_DICTIONARY, PLAIN_DICTIONARY) or at >= end or data[at] > uint8(MAX_BITS):
        return False
    largest = unpack_indices_at(data, at + 1, end, int64(data[at]), rows, low, high, first, indices)
    if largest < 0 or largest >= entries:
        return False
    _look_up(dictionary, indices, high - low, width, out, to)
    return True


@numba.njit
def _pick(
    values: Any, at: Any, rows: Any, low: Any, high: Any, first: Any, width: Any, out: Any, to: Any
) -> None:
    """Copy the values of ``rows[low:high]`` to ``out``. The value of row ``first`` is at byte ``at`` of ``values``."""
    if width == 8:
        for k in range(high - low):
            store64(out, to + 8 * k, load64(values, at + 8 * (rows[low + k] - first)))
    else:
        for k in range(high - low):
            store32(out, to + 4 * k, load32(values, at + 4 * (rows[low + k] - first)))


@numba.njit
def _spread(packed: Any, flags: Any, count: Any, width: Any, out: Any, to: Any) -> None:
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
    else:
        for i in range(count):
            flag = int64(flags[i])
            store32(out, to + 4 * i, load32(packed, at) & uint64(-flag))
            at += 4 * flag


@numba.njit
def page_parts(data: Any, page: Any, levels: Any) -> Any:
    """The start (-1 for malformed pages) and end of a data page's values, and the start and end of its levels.

    version 1:  [size of the levels, 4 bytes] [levels] [values]      without levels: [values]
    version 2:  [levels] [values]                                    the header has the size of the levels
    """
    begin = page[BODY]
    end = begin + page[SIZE]
    if page[KIND] == DATA_V2:
        return begin + page[LEVEL_BYTES], end, begin, begin + page[LEVEL_BYTES]
    if not levels:
        return begin, end, begin, begin
    if end - begin < _LENGTH:
        return int64(-1), end, begin, begin
    level_at = begin + _LENGTH
    level_end = level_at + int64(load32(data, begin))
    return (level_end if level_end <= end else int64(-1)), end, level_at, level_end


@numba.njit
def are_stored(data: Any, pages: Any) -> Any:
    """True if the positions and sizes of all pages in the table lie within the array of decompressed bytes."""
    for page in range(len(pages)):
        at, size = pages[page, BODY], pages[page, SIZE]
        if at < 0 or size < 0 or at + size > len(data) or pages[page, LEVEL_BYTES] > size:
            return False
    return True


@numba.njit
def present(levels: Any, buffer: Any, at: Any, end: Any, flags: Any) -> Any:
    """The number of rows that are not NULL; -1 for malformed levels. ``flags`` is written only if there may be a NULL."""
    count = int64(len(flags))
    if not levels or are_all_present(buffer, at, end, count):
        return count
    return flags_of(buffer, uintp(at), uintp(end), flags)


@numba.njit
def largest_number(pages: Any, column: Any) -> Any:
    """The largest number in a column of the page table; 0 for an empty table."""
    largest = int64(0)
    for page in range(len(pages)):
        largest = max(largest, pages[page, column])
    return largest


@numba.njit
def range_end(rows: Any, low: Any, limit: Any) -> Any:
    """Binary search from ``low`` on: the position of the first row number that is not below ``limit``."""
    high = int64(len(rows))
    while low < high:
        middle = (low + high) >> 1
        if rows[middle] < limit:
            low = middle + 1
        else:
            high = middle
    return low


@numba.njit(
    int64(Bytes, _Table, Bytes, int64, int64, numba.boolean, numba.boolean, _Rows, _Flags, _Flags),
    cache=True,
    nogil=True,
)
def values(
    data: Any,
    pages: Any,
    dictionary: Any,
    entries: Any,
    width: Any,
    levels: Any,
    is_selected: Any,
    rows: Any,
    valid: Any,
    out: Any,
) -> Any:
    """Decode the fixed-width values, or the dictionary indices, of a chunk; returns the number of NULLs, or -1.

    data, pages: the decompressed bytes and the table of the data pages. dictionary, entries: the dictionary's bytes and the
    number of its values. width: the number of bytes of a value, 4 or 8; 0 for 32-bit dictionary indices. levels: whether
    the column can be NULL. is_selected: whether ``rows``, positions in rising order, are read instead of all rows. valid:
    receives a flag for each row if the column can be NULL. out: receives the values, zero for NULL. Returns -1 for malformed
    pages and other encodings.
    """
    if not are_stored(data, pages) or entries < 0 or entries * width > len(dictionary):
        return int64(-1)
    slot = width if width else int64(_LENGTH)  # bytes of a value in the output
    longest = largest_number(pages, VALUES)
    # scratch space of one page: indices; NULL flags; values that are present; values of all rows
    indices = np.empty(longest + 8, np.uint32)
    flags = np.empty(longest, np.uint8)
    packed = np.empty((longest + 1) * slot + _SLACK if levels else int64(_SLACK), np.uint8)
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
        at, end, level_at, level_end = page_parts(data, page, levels)
        if at < 0:
            return int64(-1)
        page_flags = flags[:count]
        some = present(levels, data, level_at, level_end, page_flags)
        if some < 0:
            return int64(-1)
        encoding = page[ENCODING]
        to = low * slot
        if some == count:
            if levels:
                valid[low:high] = 1
            if not is_selected:
                if not _decode_all(
                    data, at, end, encoding, count, width, dictionary, entries, indices, out, to
                ):
                    return int64(-1)
            elif (high - low) * _MIN_ROWS_PER_SELECTED_ROW <= count:
                if not _decode_some(
                    data,
                    at,
                    end,
                    encoding,
                    count,
                    width,
                    dictionary,
                    entries,
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
                    data, at, end, encoding, count, width, dictionary, entries, indices, whole, int64(0)
                ):
                    return int64(-1)
                _pick(whole, int64(0), rows, low, high, first, slot, out, to)
        else:
            if not _decode_all(
                data, at, end, encoding, some, width, dictionary, entries, indices, packed, int64(0)
            ):
                return int64(-1)
            if is_selected:
                _spread(packed, page_flags, count, slot, whole, int64(0))
                _pick(whole, int64(0), rows, low, high, first, slot, out, to)
                for k in range(low, high):
                    flag = page_flags[rows[k] - first]
                    valid[k] = flag
                    nulls += 1 - int64(flag)
            else:
                _spread(packed, page_flags, count, slot, out, to)
                valid[low:high] = page_flags
                nulls += count - some
        low = high
        first += count
    return nulls if not is_selected or low == len(rows) else int64(-1)
