"""Decodes delta-encoded integers and strings of Parquet pages.

Encodings.md of apache/parquet-format describes the three encodings:

DELTA_BINARY_PACKED stores integers. A header has four varints: the size of a block (a multiple of 128), the number of
miniblocks in a block, the number of values, and the first value (zigzag). Each block has the least difference between
neighbors (a zigzag varint), the bit width of each miniblock in a byte, and the miniblocks: differences minus the least one,
packed from the lowest bit on. For the values 7, 5, 3, 1, 2, 3, 4, 5, whose differences are -2, -2, -2, 1, 1, 1, 1:

    80 01 04 08 0E     blocks of 128 values in 4 miniblocks, 8 values, the first one is 7 (zigzag 14)
    03                 the least difference is -2 (zigzag 3)
    02 00 00 00        the first miniblock has 2 bits per value, the others are empty
    C0 3F 00 ...       0, 0, 0, 3, 3, 3, 3 with 2 bits each, and zeros up to the 32 values of a miniblock

Sums wrap around: 2^63 - 1 plus the difference 1 is -2^63.

DELTA_LENGTH_BYTE_ARRAY stores the lengths of all strings with DELTA_BINARY_PACKED, and then the bytes of all strings. For
"ab", "" and "c" these are the lengths 2, 0, 1 and the bytes "abc".

DELTA_BYTE_ARRAY stores the number of bytes that each string shares with the string before it, with DELTA_BINARY_PACKED, and
then the other bytes of the strings with DELTA_LENGTH_BYTE_ARRAY. For "axis", "axle" and "babble" these are the numbers
0, 2, 0 and the strings "axis", "le" and "babble".

``plain_strings`` makes plain pages from those of the last two encodings, and ``parquet_plain.py`` uses ``unpack_deltas`` for
integers.

Invariant: the loads and stores of ``memory.py`` have no bounds checks. The bytes of a miniblock are compared with the end of
the page, the number of values with the rows that are not NULL, and the lengths of a page with its bytes, before a loop uses
them. A result of -1 or False lets pyarrow read the chunk, which reports the damage.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint64, uintp

from kquery_spark.kernels.loops.block_copies import COPY_SLACK, copy_string, with_more_room
from kquery_spark.kernels.loops.memory import copy_bytes, load64, store32, store64
from kquery_spark.kernels.loops.parquet_page_parts import are_stored, largest_number, page_parts, read_levels
from kquery_spark.kernels.loops.parquet_pages import Bytes
from kquery_spark.kernels.loops.parquet_runs import varint
from kquery_spark.kernels.parquet_page_table import (
    BODY,
    CONVERSION_SLACK,
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    ENCODING,
    LEVEL_BYTES,
    MAX_CONVERTED_BYTES,
    PLAIN,
    RAW_SIZE,
    SIZE,
    VALUES,
)

_LENGTH = 4  # the number of bytes of a plain string's length
_ONE_LOAD_BITS = uintp(57)  # after up to 7 skipped bits, a load of 64 bits has this many
_MINIBLOCK_STEP = uintp(32)  # the number of values of a miniblock is a multiple
_MAX_BLOCK = uintp(1 << 31)
_ONE, _THREE, _SEVEN, _EIGHT, _WORD_BITS = uintp(1), uintp(3), uintp(7), uintp(8), uintp(64)


@numba.njit(inline="always")
def _zigzag(number: Any) -> Any:
    """Return the signed integer of a zigzag varint, as 64 bits: 0, 1, 2, 3 stand for 0, -1, 1, -2."""
    return uint64(number >> _ONE) ^ (uint64(0) - uint64(number & _ONE))


@numba.njit
def _word_at(data: Any, at: Any, bit: Any, bits: Any) -> Any:
    """Read the ``bits`` bits, 1 to 64, from ``bit`` on, byte by byte; the caller checks that their bytes exist."""
    at += bit >> _THREE
    word, loaded = uint64(data[at]) >> (bit & _SEVEN), _EIGHT - (bit & _SEVEN)
    while loaded < bits:
        at += _ONE
        word |= uint64(data[at]) << loaded
        loaded += _EIGHT
    return word & (~uint64(0) >> (_WORD_BITS - bits))


@numba.njit
def _add_differences(
    data: Any, at: Any, count: Any, bits: Any, least: Any, value: Any, width: Any, out: Any, to: Any
) -> Any:
    """Unpack ``count`` differences of ``bits`` bits and write the sums; returns the last one.

    value: the value before. The caller checks that the bytes exist. Each store has eight bytes; for values of four bytes,
    the next one overwrites the upper half.
    """
    if bits == uintp(0):
        for i in range(count):
            value += least
            store64(out, to + uintp(i) * width, value)
        return value
    mask = ~uint64(0) >> (_WORD_BITS - bits)
    # the last values before the end of the array are read byte by byte, since a load reads up to nine bytes from a value on
    reach = at + ((count * bits) >> _THREE) + _EIGHT + _ONE
    fast = count if reach <= uintp(len(data)) else uintp(0)
    if bits <= _ONE_LOAD_BITS:
        for i in range(fast):
            bit = uintp(i) * bits
            value += ((load64(data, at + (bit >> _THREE)) >> (bit & _SEVEN)) & mask) + least
            store64(out, to + uintp(i) * width, value)
    else:
        for i in range(fast):
            bit = uintp(i) * bits
            byte, skipped = at + (bit >> _THREE), bit & _SEVEN
            # two shifts, as a word cannot be shifted by 64 bits if none is skipped
            above = (uint64(data[byte + _EIGHT]) << (_WORD_BITS - _ONE - skipped)) << _ONE
            value += (((load64(data, byte) >> skipped) | above) & mask) + least
            store64(out, to + uintp(i) * width, value)
    for i in range(fast, count):
        value += _word_at(data, at, uintp(i) * bits, bits) + least
        store64(out, to + uintp(i) * width, value)
    return value


@numba.njit
def _block_header(data: Any, at: Any, end: Any, count: Any) -> Any:
    """Read the header of delta-encoded integers; returns the values per miniblock, the miniblocks, the value, its end.

    The number of values per miniblock is 0 for malformed headers, and for another number of values than ``count``.
    """
    block, at = varint(data, at, end)
    miniblocks, at = varint(data, at, end)
    total, at = varint(data, at, end)
    first, at = varint(data, at, end)
    if at > end or total != count or miniblocks == uintp(0) or block > _MAX_BLOCK:
        return uintp(0), miniblocks, uint64(0), at
    size = block // miniblocks
    if size * miniblocks != block or size % _MINIBLOCK_STEP != uintp(0):
        size = uintp(0)
    return size, miniblocks, _zigzag(first), at


@numba.njit
def unpack_deltas(data: Any, at: Any, end: Any, count: Any, width: Any, out: Any, to: Any) -> Any:
    """Decode delta-encoded integers to ``width`` bytes each, 4 or 8; returns the position after them, -1 for malformed ones.

    count: the number of integers, which the header must have; at least 1. out: has room for them from byte ``to`` on, and
    for ``CONVERSION_SLACK`` more bytes.
    """
    at, end, left, width, to = uintp(at), uintp(end), uintp(count), uintp(width), uintp(to)
    size, miniblocks, value, at = _block_header(data, at, end, left)
    if size == uintp(0) or left == uintp(0):
        return int64(-1)
    store64(out, to, value)
    to += width
    left -= _ONE
    while left > uintp(0):
        number, widths = varint(data, at, end)
        if widths > end or miniblocks > end - widths:
            return int64(-1)
        least, at = _zigzag(number), widths + miniblocks
        for i in range(miniblocks):
            if left == uintp(0):
                break
            bits = uintp(data[widths + uintp(i)])
            if bits > _EIGHT * width or (size >> _THREE) * bits > end - at:
                return int64(-1)
            step = min(size, left)
            value = _add_differences(data, at, step, bits, least, value, width, out, to)
            at += (size >> _THREE) * bits
            to += step * width
            left -= step
    return int64(at)


@numba.njit
def _read_lengths(
    data: Any, at: Any, end: Any, encoding: Any, count: Any, stored: Any, shared: Any, own: Any
) -> Any:
    """Read the lengths of a page's strings; returns the position of their bytes (-1 for malformed lengths) and their sum.

    shared, own: receive, as integers of four bytes, the numbers of bytes from the string before and of other bytes. stored:
    the bytes that each string must have; 0 for any number.
    """
    if count == 0:
        return at, int64(0)
    lengths, heads = own[: _LENGTH * count].view(np.int32), shared[: _LENGTH * count].view(np.int32)
    if encoding == DELTA_BYTE_ARRAY:
        at = unpack_deltas(data, at, end, count, int64(_LENGTH), shared, int64(0))
        if at < 0:
            return int64(-1), int64(0)
    else:
        heads[:] = 0
    at = unpack_deltas(data, at, end, count, int64(_LENGTH), own, int64(0))
    if at < 0:
        return int64(-1), int64(0)
    total = own_bytes = before = int64(0)
    for i in range(count):
        head, length = int64(heads[i]), int64(lengths[i])
        if head < 0 or length < 0 or head > before or (stored > 0 and head + length != stored):
            return int64(-1), int64(0)
        before = head + length
        total += before
        own_bytes += length
    return (at if own_bytes <= end - at else int64(-1)), total


@numba.njit
def _write_strings(
    data: Any, at: Any, count: Any, stored: Any, shared: Any, own: Any, out: Any, to: Any
) -> None:
    """Write the strings of a page as plain ones. at: the position of their bytes.

    ``_read_lengths`` has checked that the bytes exist, and the caller that the output has room for the strings.
    """
    lengths, heads = own[: _LENGTH * count].view(np.int32), shared[: _LENGTH * count].view(np.int32)
    before = to
    for i in range(count):
        head, length = int64(heads[i]), int64(lengths[i])
        if stored == 0:
            store32(out, to, uint64(head + length))
            to += _LENGTH
        if head:
            copy_string(out, to, out, before, head)
        copy_string(out, to + head, data, at, length)
        before = to
        at += length
        to += head + length


@numba.njit(
    numba.types.Tuple((numba.boolean, numba.uint8[::1]))(
        Bytes, int64[:, ::1], numba.boolean[::1], numba.boolean, int64
    ),
    cache=True,
    nogil=True,
)
def plain_strings(data: Any, pages: Any, is_needed: Any, has_levels: Any, stored: Any) -> Any:
    """Copy the needed pages, with plain strings instead of delta-encoded ones, and make the page table point to the copy.

    Returns whether all pages are sound, and the copy. A page of strings that share many bytes may be much smaller than its
    strings, so their size is computed before memory is allocated, and must be at most ``MAX_CONVERTED_BYTES``. stored: the
    bytes of each string, without a length before them; 0 if each string has its length. The other parameters are those of
    ``convert_pages``.
    """
    if not are_stored(data, pages):
        return False, np.empty(0, np.uint8)
    longest, room = largest_number(pages, VALUES), int64(COPY_SLACK)
    flags = np.empty(longest, np.uint8)
    shared, own = (
        np.empty(_LENGTH * longest + CONVERSION_SLACK, np.uint8),
        np.empty(_LENGTH * longest + CONVERSION_SLACK, np.uint8),
    )
    for number in range(len(pages)):
        if is_needed[number]:
            room += pages[number, SIZE] + _LENGTH * pages[number, VALUES]
    out = np.empty(min(room, int64(MAX_CONVERTED_BYTES)), np.uint8)
    to = int64(0)
    for number in range(len(pages)):
        page = pages[number]
        if not is_needed[number]:
            page[BODY], page[SIZE], page[LEVEL_BYTES] = to, 0, 0
            continue
        begin, values, encoding = page[BODY], page[VALUES], page[ENCODING]
        at, end, level_at, level_end = page_parts(data, page, has_levels)
        if at < 0:
            return False, out
        is_converted = encoding in (DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY)
        copied, count, added = end - begin, int64(0), int64(0)
        if is_converted:
            copied = at - begin
            count = read_levels(data, level_at, level_end, has_levels, flags[:values])
            if count < 0:
                return False, out
            at, added = _read_lengths(data, at, end, encoding, count, stored, shared, own)
            if at < 0:
                return False, out
            added += int64(0) if stored > 0 else _LENGTH * count
        used = to + copied + added + COPY_SLACK
        if used > MAX_CONVERTED_BYTES:
            return False, out
        if used > len(out):
            out = with_more_room(out, to, copied + added + COPY_SLACK)
        copy_bytes(out, to, data, begin, copied)
        if is_converted:
            _write_strings(data, at, count, stored, shared, own, out, to + copied)
            page[ENCODING] = PLAIN
        page[BODY], page[SIZE], page[RAW_SIZE] = to, copied + added, copied + added
        to += copied + added
    return True, out[:to]
