"""Decodes delta-encoded integers and strings of Parquet pages.

Encodings.md of apache/parquet-format describes the three encodings:

DELTA_BINARY_PACKED stores integers. The header has four varints: the number of values in a block (a multiple of 128), the
number of miniblocks in a block, the number of all values, and the first value (zigzag). Each block begins with the smallest
difference between neighbors (a zigzag varint) and one byte with the bit width of each miniblock. The miniblocks follow. They
store the differences minus the smallest one, bit-packed from the lowest bit on. For the values 7, 5, 3, 1, 2, 3, 4, 5, whose
differences are -2, -2, -2, 1, 1, 1, 1:

    80 01 04 08 0E     blocks of 128 values in 4 miniblocks, 8 values, the first one is 7 (zigzag 14)
    03                 the smallest difference is -2 (zigzag 3)
    02 00 00 00        the first miniblock has 2 bits per value, the others are empty
    C0 3F 00 ...       0, 0, 0, 3, 3, 3, 3 with 2 bits each, and zeros up to the 32 values of a miniblock

Sums wrap around: 2^63 - 1 plus the difference 1 is -2^63.

DELTA_LENGTH_BYTE_ARRAY stores the lengths of all strings with DELTA_BINARY_PACKED, and then the bytes of all strings. For
"ab", "" and "c" these are the lengths 2, 0, 1 and the bytes "abc".

DELTA_BYTE_ARRAY stores the length of the prefix that each string shares with the string before it, with
DELTA_BINARY_PACKED, and then the suffixes with DELTA_LENGTH_BYTE_ARRAY. For "axis", "axle" and "babble" the lengths of the
prefixes are 0, 2, 0, and the suffixes are "axis", "le" and "babble".

``plain_strings`` rewrites pages of the last two encodings as plain pages. ``parquet_numbers.py`` uses ``unpack_deltas`` for
integers.

Invariant: the loads and stores of ``memory.py`` have no bounds checks. Before a loop reads bytes, the functions check that
the miniblock ends within the page, that the header declares one value for each row that is not NULL, and that the strings
end within the page. If a check fails, the result is -1 or False. Then pyarrow reads the chunk, and reports the damage.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint64, uintp

from kquery_spark.kernels.loops.memory import copy_bytes, load64, store32, store64
from kquery_spark.kernels.loops.parquet_page_parts import (
    are_stored,
    largest_number,
    page_parts,
    read_levels,
    skip_page,
)
from kquery_spark.kernels.loops.parquet_pages import Bytes
from kquery_spark.kernels.loops.parquet_runs import varint
from kquery_spark.kernels.loops.string_copies import COPY_SLACK, copy_string, with_more_room
from kquery_spark.kernels.parquet_page_table import (
    BODY,
    CONVERSION_SLACK,
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    ENCODING,
    MAX_CONVERTED_BYTES,
    PLAIN,
    RAW_SIZE,
    SIZE,
    SIZE_BYTES,
    VALUES,
)

_ONE_LOAD_BITS = uintp(57)  # after up to 7 skipped bits, a load of 64 bits still has at least this many
_MINIBLOCK_STEP = uintp(32)  # the number of values in a miniblock is a multiple of this
_MAX_BLOCK = uintp(1 << 31)  # with more values in a block, the sizes of its miniblocks could overflow
_ONE, _THREE, _SEVEN, _EIGHT, _WORD_BITS = uintp(1), uintp(3), uintp(7), uintp(8), uintp(64)


@numba.njit(inline="always")
def _decode_zigzag(number: Any) -> Any:
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
    """Unpack ``count`` differences of ``bits`` bits, add them up, and write the sums; returns the last sum.

    value: the value before the first difference. The caller checks that the bytes exist. Each store writes eight bytes; if
    values have four bytes, the next store overwrites the upper half.
    """
    if bits == uintp(0):
        for i in range(count):
            value += least
            store64(out, to + uintp(i) * width, value)
        return value
    mask = ~uint64(0) >> (_WORD_BITS - bits)
    # The fast loops read up to nine bytes from the start of a value on. If the array may end before that, the whole
    # miniblock is read byte by byte.
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
            # two shifts, because one shift would be by 64 bits if no bit is skipped, which is undefined
            above = (uint64(data[byte + _EIGHT]) << (_WORD_BITS - _ONE - skipped)) << _ONE
            value += (((load64(data, byte) >> skipped) | above) & mask) + least
            store64(out, to + uintp(i) * width, value)
    for i in range(fast, count):
        value += _word_at(data, at, uintp(i) * bits, bits) + least
        store64(out, to + uintp(i) * width, value)
    return value


@numba.njit
def _read_header(data: Any, at: Any, end: Any, count: Any) -> Any:
    """Read the header of delta-encoded integers.

    Returns the number of values per miniblock, the number of miniblocks per block, the first value, and the end of the
    header. The first result is 0 if the header is malformed, or declares another number of values than ``count``. Blocks
    whose number of values is not a multiple of 128 are accepted, because the format still determines the values.
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
    return size, miniblocks, _decode_zigzag(first), at


@numba.njit
def unpack_deltas(data: Any, at: Any, end: Any, count: Any, width: Any, out: Any, to: Any) -> Any:
    """Decode delta-encoded integers to ``width`` bytes each, 4 or 8; returns the position after them, -1 for malformed ones.

    count: the number of integers, at least 1; the header must declare the same number. out: has room for them from byte
    ``to`` on, and for ``CONVERSION_SLACK`` more bytes.
    """
    at, end, left, width, to = uintp(at), uintp(end), uintp(count), uintp(width), uintp(to)
    size, miniblocks, value, at = _read_header(data, at, end, left)
    if size == uintp(0) or left == uintp(0):
        return int64(-1)
    store64(out, to, value)
    to += width
    left -= _ONE
    while left > uintp(0):
        number, widths = varint(data, at, end)
        if widths > end or miniblocks > end - widths:
            return int64(-1)
        least, at = _decode_zigzag(number), widths + miniblocks
        for i in range(miniblocks):
            if left == uintp(0):
                break  # miniblocks without values have a bit width, but no bytes
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
    data: Any, at: Any, end: Any, encoding: Any, count: Any, fixed_size: Any, prefixes: Any, suffixes: Any
) -> Any:
    """Read the sizes of a page's strings; returns the position of the suffixes (-1 for malformed sizes) and the size of all.

    prefixes, suffixes: receive the sizes of the prefixes and suffixes as integers of four bytes; DELTA_LENGTH_BYTE_ARRAY has
    no prefixes. fixed_size: the size that each string must have; 0 for any size.
    """
    if count == 0:
        return at, int64(0)
    prefix_sizes = prefixes[: SIZE_BYTES * count].view(np.int32)
    suffix_sizes = suffixes[: SIZE_BYTES * count].view(np.int32)
    if encoding == DELTA_BYTE_ARRAY:
        at = unpack_deltas(data, at, end, count, int64(SIZE_BYTES), prefixes, int64(0))
        if at < 0:
            return int64(-1), int64(0)
    else:
        prefix_sizes[:] = 0
    at = unpack_deltas(data, at, end, count, int64(SIZE_BYTES), suffixes, int64(0))
    if at < 0:
        return int64(-1), int64(0)
    total = suffix_bytes = size_before = int64(0)
    for i in range(count):
        prefix_size, suffix_size = int64(prefix_sizes[i]), int64(suffix_sizes[i])
        size = prefix_size + suffix_size
        if not 0 <= prefix_size <= size_before or suffix_size < 0 or (fixed_size > 0 and size != fixed_size):
            return int64(-1), int64(0)
        size_before = size
        total += size
        suffix_bytes += suffix_size
    return (at if suffix_bytes <= end - at else int64(-1)), total


@numba.njit
def _write_strings(
    data: Any, at: Any, count: Any, fixed_size: Any, prefixes: Any, suffixes: Any, out: Any, to: Any
) -> None:
    """Write the strings of a page as plain ones. at: the position of their suffixes. The sizes are from ``_read_lengths``.

    ``_read_lengths`` has checked that the bytes exist, and the caller that the output has room for the strings.
    """
    prefix_sizes = prefixes[: SIZE_BYTES * count].view(np.int32)
    suffix_sizes = suffixes[: SIZE_BYTES * count].view(np.int32)
    string_before = to
    for i in range(count):
        prefix_size, suffix_size = int64(prefix_sizes[i]), int64(suffix_sizes[i])
        if fixed_size == 0:
            store32(out, to, uint64(prefix_size + suffix_size))
            to += SIZE_BYTES
        if prefix_size:
            copy_string(out, to, out, string_before, prefix_size)
        copy_string(out, to + prefix_size, data, at, suffix_size)
        string_before = to
        at += suffix_size
        to += prefix_size + suffix_size


@numba.njit(
    numba.types.Tuple((numba.boolean, numba.uint8[::1]))(
        Bytes, int64[:, ::1], numba.boolean[::1], numba.boolean, int64
    ),
    cache=True,
    nogil=True,
)
def plain_strings(data: Any, pages: Any, is_needed: Any, has_levels: Any, fixed_size: Any) -> Any:
    """Copy the needed pages, with plain strings instead of delta-encoded ones, and make the page table point to the copy.

    Returns whether all pages are sound, and the copy. If strings share long prefixes, a page may be much smaller than its
    strings. So their size is computed before memory is allocated for them, and the copy has at most ``MAX_CONVERTED_BYTES``.
    fixed_size: the size of each value of a FIXED_LEN_BYTE_ARRAY column, whose plain values have no length before them; 0 for
    BYTE_ARRAY. The other parameters are those of ``convert_pages``.
    """
    if not are_stored(data, pages):
        return False, np.empty(0, np.uint8)
    longest, room = largest_number(pages, VALUES), int64(COPY_SLACK)
    flags = np.empty(longest, np.uint8)
    prefixes = np.empty(SIZE_BYTES * longest + CONVERSION_SLACK, np.uint8)
    suffixes = np.empty(SIZE_BYTES * longest + CONVERSION_SLACK, np.uint8)
    for number in range(len(pages)):
        if is_needed[number]:
            room += pages[number, SIZE] + SIZE_BYTES * pages[number, VALUES]
    out = np.empty(min(room, int64(MAX_CONVERTED_BYTES)), np.uint8)
    to = int64(0)
    for number in range(len(pages)):
        page = pages[number]
        if not is_needed[number]:
            skip_page(page, to)
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
            at, added = _read_lengths(data, at, end, encoding, count, fixed_size, prefixes, suffixes)
            if at < 0:
                return False, out
            added += int64(0) if fixed_size > 0 else SIZE_BYTES * count
        used = to + copied + added + COPY_SLACK
        if used > MAX_CONVERTED_BYTES:
            return False, out
        if used > len(out):
            out = with_more_room(out, to, copied + added + COPY_SLACK, int64(MAX_CONVERTED_BYTES))
        copy_bytes(out, to, data, begin, copied)
        if is_converted:
            _write_strings(data, at, count, fixed_size, prefixes, suffixes, out, to + copied)
            page[ENCODING] = PLAIN
        page[BODY], page[SIZE], page[RAW_SIZE] = to, copied + added, copied + added
        to += copied + added
    return True, out[:to]
