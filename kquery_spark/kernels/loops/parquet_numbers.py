"""Converts numbers whose encoding or layout differs from Arrow's to plain values, before ``parquet_values.py`` decodes them.

``convert_pages`` copies the pages of a chunk. Levels and dictionary indices stay as they are. The values are converted:

    INT96              8 bytes nanoseconds of the day, 4 bytes Julian day --> 8 bytes microseconds since 1970
    BIG_ENDIAN         1 to 16 bytes, the most significant one first     --> 8 or 16 bytes, the least significant one first
    SIZED_BIG_ENDIAN   a size in 4 bytes, then as in BIG_ENDIAN          --> 8 or 16 bytes, the least significant one first
    BITS               1 bit, or runs of one-bit integers                --> 1 byte

The values of a dictionary page are converted in the same way. Delta-encoded integers (``parquet_deltas.py``) and
byte-stream-split values (``parquet_splits.py``) become plain values as Arrow has them.

Invariant: the loads and stores of ``memory.py`` have no bounds checks. ``convert_pages`` checks that the output has room for
all values. Before bytes are read, the functions check that the page has them: at once for values of a fixed width, and for
each integer or miniblock if sizes vary. If a check fails, the result is False. Then pyarrow reads the chunk, and reports the
damage.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint64, uintp

from kquery_spark.kernels.loops.memory import (
    copy_bytes,
    load32,
    load64,
    load64_big_endian,
    store64,
)
from kquery_spark.kernels.loops.parquet_deltas import unpack_deltas
from kquery_spark.kernels.loops.parquet_levels import unpack_bits, unpack_flags
from kquery_spark.kernels.loops.parquet_page_parts import (
    are_stored,
    largest_number,
    page_parts,
    read_levels,
    skip_page,
)
from kquery_spark.kernels.loops.parquet_pages import Bytes
from kquery_spark.kernels.loops.parquet_splits import join_streams
from kquery_spark.kernels.parquet_page_table import (
    AS_IN_ARROW,
    BIG_ENDIAN,
    BITS,
    BODY,
    BYTE_STREAM_SPLIT,
    CONVERSION_SLACK,
    DELTA_BINARY_PACKED,
    ENCODING,
    INT96,
    INT96_BYTES,
    JULIAN_DAY_OF_EPOCH,
    PLAIN,
    RAW_SIZE,
    RLE,
    SIZE,
    SIZE_BYTES,
    SIZED_BIG_ENDIAN,
    VALUES,
)

_MAX_INTEGER_BYTES = 16
_MICROS_PER_DAY = 86_400_000_000
# For these days, and for nanoseconds below 2^63, the microseconds fit into 64 bits.
_MAX_DAY = JULIAN_DAY_OF_EPOCH + 106_000_000


@numba.njit
def _int96_times(data: Any, at: Any, count: Any, out: Any, to: Any) -> Any:
    """Convert INT96 times to microseconds; False for days below 1, negative nanoseconds, and late times.

    These are rare. The caller then reads the chunk with pyarrow, and ``sources/parquet/int96.py`` converts or rejects them.
    """
    invalid = uint64(0)
    for i in range(count):
        nanos, day = load64(data, at + 12 * i), load32(data, at + 12 * i + 8)
        invalid |= (nanos | (day - uint64(1)) | (uint64(_MAX_DAY) - day)) >> uint64(63)
        micros = (day - uint64(JULIAN_DAY_OF_EPOCH)) * uint64(_MICROS_PER_DAY) + nanos // uint64(1000)
        store64(out, to + 8 * i, micros)
    return invalid == uint64(0)


@numba.njit
def _first_word(data: Any, at: Any, stored: Any) -> Any:
    """Load a big-endian integer of fewer than eight bytes, byte by byte, to the upper end of a word."""
    word = uint64(0)
    for i in range(stored):
        word = (word << uint64(8)) | uint64(data[at + i])
    return int64(word << uint64(64 - 8 * stored))


@numba.njit
def _big_endian_integers(data: Any, at: Any, count: Any, stored: Any, width: Any, out: Any, to: Any) -> Any:
    """Convert big-endian integers of ``stored`` bytes to ``width`` bytes; False if one does not fit.

    The last eight bytes of an integer are loaded as one word. If it has fewer bytes, the word begins before the integer, and
    a shift removes the foreign bytes; only at the start of the array there may be none to load.
    """
    overflow = int64(0)
    if stored <= 8:
        unused = 64 - 8 * stored
        for i in range(count):
            end = at + (i + 1) * stored
            word = (
                load64_big_endian(data, end - 8) << unused
                if end >= 8
                else _first_word(data, end - stored, stored)
            )
            store64(out, to + width * i, word >> unused)
            if width == 16:
                store64(out, to + width * i + 8, word >> 63)
        return True
    unused = 128 - 8 * stored
    for i in range(count):
        start = at + i * stored
        high, low = load64_big_endian(data, start) >> unused, load64_big_endian(data, start + stored - 8)
        store64(out, to + width * i, low)
        if width == 16:
            store64(out, to + width * i + 8, high)
        else:
            overflow |= high ^ (low >> 63)
    return overflow == 0


@numba.njit
def _bits(data: Any, at: Any, end: Any, encoding: Any, valid_rows: Any, out: Any, to: Any) -> Any:
    """Convert the Boolean values of a page to bytes; False for malformed pages."""
    if encoding == PLAIN:
        count = min(valid_rows, 8 * (end - at))
        unpack_bits(data, uintp(at), uintp(count), out, uintp(to))
        return count == valid_rows
    if end - at < SIZE_BYTES:
        return valid_rows == 0
    size = int64(load32(data, at))
    at += SIZE_BYTES
    if size > end - at:
        return False
    return unpack_flags(data, uintp(at), uintp(at + size), out[to : to + valid_rows]) >= 0


@numba.njit
def _store_integer(data: Any, at: Any, step: Any, stored: Any, width: Any, out: Any, to: Any) -> Any:
    """Convert a big-endian integer whose bytes are ``step`` bytes apart; the result is not 0 if it does not fit."""
    # both words begin as 64 copies of the sign bit, and the bytes are shifted in from the right
    high = low = uint64(0) - uint64(data[at] >> numba.uint8(7))
    upper = max(stored - 8, 0)
    for i in range(upper):
        high = (high << uint64(8)) | uint64(data[at + step * i])
    for i in range(upper, stored):
        low = (low << uint64(8)) | uint64(data[at + step * i])
    store64(out, to, low)
    if width == 16:
        store64(out, to + 8, high)
        return int64(0)
    return int64(high) ^ (int64(low) >> 63)


@numba.njit
def _split_integers(data: Any, at: Any, count: Any, stored: Any, width: Any, out: Any, to: Any) -> Any:
    """Convert byte-stream-split big-endian integers; False if one does not fit."""
    overflow = int64(0)
    for i in range(count):
        overflow |= _store_integer(data, at + i, count, stored, width, out, to + width * i)
    return overflow == 0


@numba.njit
def _sized_integers(data: Any, at: Any, end: Any, count: Any, width: Any, out: Any, to: Any) -> Any:
    """Convert big-endian integers, each preceded by its size; False for malformed pages, or if one does not fit."""
    overflow = int64(0)
    for i in range(count):
        if end - at < SIZE_BYTES:
            return False
        size = int64(load32(data, at))
        at += SIZE_BYTES
        if not 0 < size <= min(end - at, _MAX_INTEGER_BYTES):
            return False
        overflow |= _store_integer(data, at, int64(1), size, width, out, to + width * i)
        at += size
    return overflow == 0


@numba.njit
def _is_converted(kind: Any, encoding: Any) -> Any:
    """True if the values of a page are converted. Dictionary indices, and plain values as in Arrow, are copied.

    ``decode_values`` declines pages with other encodings.
    """
    if encoding == PLAIN:
        return kind != AS_IN_ARROW
    if encoding == BYTE_STREAM_SPLIT:
        return kind in (AS_IN_ARROW, BIG_ENDIAN)
    return (kind == BITS and encoding == RLE) or (kind == AS_IN_ARROW and encoding == DELTA_BINARY_PACKED)


@numba.njit
def _convert_values(
    data: Any,
    at: Any,
    end: Any,
    encoding: Any,
    count: Any,
    kind: Any,
    stored: Any,
    width: Any,
    out: Any,
    to: Any,
) -> Any:
    """Convert the ``count`` values of a page that are not NULL; False for malformed pages.

    Before it calls the function for a layout, it checks the widths for which that function is written. Values of a fixed
    width must also lie within the page; the other functions check that themselves.
    """
    if count == 0:
        return True
    if encoding == DELTA_BINARY_PACKED:
        return (width == 4 or width == 8) and unpack_deltas(data, at, end, count, width, out, to) >= 0
    if kind == BITS:
        return width == 1 and _bits(data, at, end, encoding, count, out, to)
    if kind == SIZED_BIG_ENDIAN:
        return (width == 8 or width == 16) and _sized_integers(data, at, end, count, width, out, to)
    if encoding == BYTE_STREAM_SPLIT and count * stored != end - at:
        return False
    if kind == AS_IN_ARROW:
        if stored != width or (width != 4 and width != 8):
            return False
        join_streams(data, at, count, width, out, to)
        return True
    if count * stored > end - at:
        return False
    if kind == INT96:
        return stored == INT96_BYTES and width == 8 and _int96_times(data, at, count, out, to)
    if width != 8 and width != 16:
        return False
    if encoding == BYTE_STREAM_SPLIT:
        return _split_integers(data, at, count, stored, width, out, to)
    return _big_endian_integers(data, at, count, stored, width, out, to)


@numba.njit(
    numba.boolean(
        Bytes, int64[:, ::1], numba.boolean[::1], numba.boolean, int64, int64, int64, numba.uint8[::1]
    ),
    cache=True,
    nogil=True,
)
def convert_pages(
    data: Any, pages: Any, is_needed: Any, has_levels: Any, kind: Any, stored: Any, width: Any, out: Any
) -> Any:
    """Copy the needed pages to ``out`` with converted values, and make the page table point there; False if that fails.

    data, pages: the decompressed bytes and the table of the data pages. is_needed: a flag for each page; the other pages get
    the size 0. has_levels: whether the column has definition levels. kind: the layout of the plain values, for example
    ``INT96``. stored, width: the bytes of a value in the page (unused for ``BITS`` and ``SIZED_BIG_ENDIAN``) and in ``out``.
    out: has room for the bytes of the needed pages, for all of their values, and for ``CONVERSION_SLACK`` more bytes.
    """
    if not are_stored(data, pages) or not 0 < stored <= _MAX_INTEGER_BYTES:
        return False
    flags = np.empty(largest_number(pages, VALUES), np.uint8)
    to = int64(0)
    for number in range(len(pages)):
        page = pages[number]
        if not is_needed[number]:
            skip_page(page, to)
            continue
        begin, values, encoding = page[BODY], page[VALUES], page[ENCODING]
        at, end, level_at, level_end = page_parts(data, page, has_levels)
        if at < 0 or to + page[SIZE] + values * width + CONVERSION_SLACK > len(out):
            return False
        page[BODY] = to
        is_converted = _is_converted(kind, encoding)
        copied = (at if is_converted else end) - begin
        copy_bytes(out, to, data, begin, copied)
        to += copied
        if is_converted:
            count = read_levels(data, level_at, level_end, has_levels, flags[:values])
            if count < 0 or not _convert_values(data, at, end, encoding, count, kind, stored, width, out, to):
                return False
            page[ENCODING] = PLAIN
            to += count * width
        page[SIZE] = page[RAW_SIZE] = to - page[BODY]
    return True
