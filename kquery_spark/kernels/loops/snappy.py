"""Decompresses the Snappy blocks of a Parquet column chunk into one array.

A block begins with its raw size as a varint; elements follow (format_description.txt of google/snappy). The first byte of an
element is its tag. The lowest two bits of the tag are the kind of the element:

    0  literal: its bytes follow. The upper six bits are the size minus 1. If they are 60 to 63, the size minus 1 follows the
       tag in 1 to 4 bytes (little-endian), before the literal's bytes.
    1  copy of 4 to 11 bytes of the output, up to 2,047 bytes back: bits 2 to 4 of the tag are the size minus 4, and the
       upper three bits and the next byte are the offset
    2  copy of 1 to 64 bytes: the upper six bits are the size minus 1, and the offset follows in two bytes
    3  as kind 2, but the offset follows in four bytes

A copy may overlap its own output. The block ``08 04 61 62 09 02`` has 8 raw bytes: the literal "ab", and a copy of 6 bytes
from 2 bytes back, which repeats it: "abababab".

Blocks of 64-bit integers consist of elements with about 4 raw bytes, so most of the time would go into calls that copy a few
bytes. Therefore, elements of up to 16 raw bytes are copied as two words. Exceptions are literals in the last bytes of the
input, and copies from less than 8 bytes back: a word would overlap its own source. The next element overwrites the excess
bytes, and ``SNAPPY_PADDING`` is the room for those of the last element.

Positions are unsigned, because numba adds a test for negative ones to each access by a signed position.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import int64, uint64, uintp

from kquery_spark.kernels.loops.memory import copy_bytes, load32, load64, store64
from kquery_spark.kernels.loops.parquet_pages import Bytes
from kquery_spark.kernels.loops.parquet_runs import varint
from kquery_spark.kernels.parquet_page_table import BODY, COMPRESSED, LEVEL_BYTES, RAW_SIZE, SIZE

SNAPPY_PADDING = 16
"""The number of bytes that the output of ``decompress_snappy`` must have after the raw bytes of all pages."""

_ONE, _TWO, _THREE, _FOUR, _FIVE = uintp(1), uintp(2), uintp(3), uintp(4), uintp(5)
_WORD, _TWO_WORDS = uintp(8), uintp(16)
_LITERAL, _NEAR_COPY, _COPY = uintp(0), uintp(1), uintp(2)
_MAX_SIZE_IN_TAG = uintp(60)


@numba.njit(inline="always")
def _load32_or_zeros(data: Any, at: Any) -> Any:
    """Load the four bytes from ``at`` on; those past the end of the array are 0."""
    size = uintp(len(data))
    if at + _FOUR <= size:
        return load32(data, at)
    word = uint64(0)
    for i in range(size - at):
        word |= uint64(data[at + uintp(i)]) << uint64(8 * i)
    return word


@numba.njit(inline="always")
def _copy_words(out: Any, to: Any, data: Any, at: Any) -> None:
    """Copy 16 bytes. If ``out`` and ``data`` are one array, ``at`` must be at least 8 bytes before ``to``."""
    store64(out, to, load64(data, at))
    store64(out, to + _WORD, load64(data, at + _WORD))


@numba.njit
def _copy_from_output(out: Any, to: Any, offset: Any, size: Any) -> None:
    """Copy ``size`` bytes from ``offset`` bytes before ``to``, and up to 15 more bytes."""
    if offset < _WORD:
        for i in range(size):
            out[to + uintp(i)] = out[to - offset + uintp(i)]
    elif size <= _TWO_WORDS:
        _copy_words(out, to, out, to - offset)
    else:
        end = to + size
        while to < end:
            store64(out, to, load64(out, to - offset))
            to += _WORD


@numba.njit
def _decompress_block(data: Any, at: Any, end: Any, out: Any, to: Any, raw_size: Any) -> Any:
    """Decompress the block ``data[at:end]`` to ``out[to : to + raw_size]``; False if it is damaged or has another size.

    ``out`` must have ``SNAPPY_PADDING`` bytes after the block.
    """
    declared_size, at = varint(data, at, end)
    if declared_size != raw_size:
        return False
    start, out_end, data_size = to, to + raw_size, uintp(len(data))
    while at < end:
        tag = uintp(data[at])
        at += _ONE
        kind, size = tag & _THREE, (tag >> _TWO) + _ONE
        if kind == _LITERAL:
            if size > _MAX_SIZE_IN_TAG:
                size_bytes = size - _MAX_SIZE_IN_TAG
                if size_bytes > end - at:
                    return False
                mask = (_ONE << (uintp(8) * size_bytes)) - _ONE
                size = (uintp(_load32_or_zeros(data, at)) & mask) + _ONE
                at += size_bytes
            if size > end - at or size > out_end - to:
                return False
            if size <= _TWO_WORDS and at + _TWO_WORDS <= data_size:
                _copy_words(out, to, data, at)
            else:
                copy_bytes(out, to, data, at, size)
            at += size
        else:
            word = uintp(_load32_or_zeros(data, at))
            if kind == _NEAR_COPY:
                size = ((tag >> _TWO) & uintp(7)) + _FOUR
                offset = ((tag >> _FIVE) << uintp(8)) | (word & uintp(0xFF))
                at += _ONE
            elif kind == _COPY:
                offset = word & uintp(0xFFFF)
                at += _TWO
            else:
                offset = word
                at += _FOUR
            if offset == uintp(0) or offset > to - start or size > out_end - to:
                return False
            _copy_from_output(out, to, offset, size)
        to += size
    return to == out_end and at == end


@numba.njit(numba.boolean(Bytes, int64[:, ::1], numba.boolean[::1], numba.uint8[::1]), cache=True, nogil=True)
def decompress_snappy(data: Any, pages: Any, is_needed: Any, out: Any) -> Any:
    """Decompress the needed pages one after the other, and make the page table point to their raw bytes in ``out``.

    data, pages: the bytes of a chunk and the table of its pages. is_needed: a flag for each page; the other pages get the
    size 0 in the table. out: must have ``SNAPPY_PADDING`` bytes more than the raw sizes of the needed pages.

    Returns False if a needed page is damaged or does not fit into ``out``.

    If only the second of three pages of 100 raw bytes is needed, the positions and sizes become (0, 0), (0, 100), (100, 0).
    """
    to = int64(0)
    for number in range(len(pages)):
        page = pages[number]
        if not is_needed[number]:
            page[BODY], page[SIZE], page[LEVEL_BYTES] = to, 0, 0
            continue
        at, size, raw_size, levels = page[BODY], page[SIZE], page[RAW_SIZE], page[LEVEL_BYTES]
        if min(at, size, raw_size, levels) < 0 or levels > min(size, raw_size) or at + size > len(data):
            return False
        if to + raw_size + SNAPPY_PADDING > len(out):
            return False
        # in pages of version 2 the levels come first and are never compressed
        stored = levels if page[COMPRESSED] else size
        if stored > raw_size:
            return False
        copy_bytes(out, to, data, at, stored)
        if stored < raw_size and not _decompress_block(
            data, uintp(at + stored), uintp(at + size), out, uintp(to + stored), uintp(raw_size - stored)
        ):
            return False
        page[BODY], page[SIZE] = to, raw_size
        to += raw_size
    return True
