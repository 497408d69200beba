"""Decompresses Snappy blocks.

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

Positions are unsigned, because numba adds a test for negative ones to each access by a signed position.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import uint64, uintp

from kquery_spark.kernels.loops.block_copies import copy_from_output, copy_literal
from kquery_spark.kernels.loops.memory import load32
from kquery_spark.kernels.loops.parquet_runs import varint

_ONE, _TWO, _THREE, _FOUR, _FIVE = uintp(1), uintp(2), uintp(3), uintp(4), uintp(5)
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


@numba.njit
def snappy_block(data: Any, at: Any, end: Any, out: Any, to: Any, raw_size: Any) -> Any:
    """Decompress the block ``data[at:end]`` to ``out[to : to + raw_size]``; False if it is damaged or has another size.

    ``out`` must have ``PADDING`` bytes after the block.
    """
    declared_size, at = varint(data, at, end)
    if declared_size != raw_size:
        return False
    start, out_end = to, to + raw_size
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
            copy_literal(out, to, data, at, size)
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
            copy_from_output(out, to, offset, size)
        to += size
    return to == out_end and at == end
