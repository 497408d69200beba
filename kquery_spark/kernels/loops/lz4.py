"""Decompresses LZ4 blocks (lz4_Block_format.md of lz4/lz4), which is the codec LZ4_RAW of Parquet.

A block consists of sequences: a literal, and a copy of bytes of the output. The first byte of a sequence is its token. The
upper four bits are the size of the literal, and the lower four bits are the size of the copy minus 4. If one of them is 15,
more bytes follow and are added, up to and including the first one below 255. The order is: token, more bytes of the size of
the literal, literal, offset of the copy in two bytes, more bytes of the size of the copy. The last sequence ends after its
literal.

A copy may overlap its own output. The block ``26 61 62 02 00 50 63 64 65 66 67`` has 17 raw bytes: the literal "ab", a copy
of 10 bytes from 2 bytes back, and the literal "cdefg".

The last five raw bytes of a block belong to a literal, and the last copy starts at least 12 raw bytes before the end. The
reference implementation refuses other blocks, so this one does, too.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import uintp

from kquery_spark.kernels.loops.block_copies import copy_from_output, copy_literal, copy_words
from kquery_spark.kernels.loops.memory import load32, load64, store64

_ONE, _TWO, _FOUR, _EIGHT, _TWELVE = uintp(1), uintp(2), uintp(4), uintp(8), uintp(12)
_LAST_LITERAL = uintp(5)
_LONG, _MORE, _OFFSET_MASK = uintp(15), uintp(255), uintp(0xFFFF)
_TWO_WORDS, _THREE_WORDS = uintp(16), uintp(24)
_FAR = uintp(32)  # at this distance from both ends, a short literal (at most 14 bytes) cannot be the last one


@numba.njit
def _long_size(data: Any, at: Any, end: Any) -> Any:
    """Add up the bytes that follow a size of 15; returns the size and the position after it, past ``end`` if it is cut."""
    size = _LONG
    while at < end:
        byte = uintp(data[at])
        at += _ONE
        size += byte
        if byte < _MORE:
            return size, at
    return size, end + _ONE


@numba.njit
def lz4_block(data: Any, at: Any, end: Any, out: Any, to: Any, raw_size: Any) -> Any:
    """Decompress the block ``data[at:end]`` to ``out[to : to + raw_size]``; False if it is damaged or has another size.

    ``out`` must have ``PADDING`` bytes after the block.
    """
    start, out_end = to, to + raw_size
    while at < end:
        token = uintp(data[at])
        at += _ONE
        size = token >> _FOUR
        if size < _LONG and at + _FAR <= end and to + _FAR <= out_end:
            copy_words(out, to, data, at)
            at += size
            to += size
        else:
            if size == _LONG:
                size, at = _long_size(data, at, end)
            if at > end or size > end - at or size > out_end - to:
                return False
            copy_literal(out, to, data, at, size)
            at += size
            to += size
            if at + _EIGHT > end or to + _TWELVE > out_end:
                return at == end and to == out_end
        offset = load32(data, at) & _OFFSET_MASK
        at += _TWO
        size = token & _LONG
        if size == _LONG:
            size, at = _long_size(data, at, end)
            if at + _FOUR > end:
                return False
        size += _FOUR
        if offset == uintp(0) or offset > to - start or size + _LAST_LITERAL > out_end - to:
            return False
        if size <= _THREE_WORDS and offset >= _EIGHT:  # at least 12 raw bytes and the padding follow
            copy_words(out, to, out, to - offset)
            store64(out, to + _TWO_WORDS, load64(out, to - offset + _TWO_WORDS))
        else:
            copy_from_output(out, to, offset, size)
        to += size
    return False
