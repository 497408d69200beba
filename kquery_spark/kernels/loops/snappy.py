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

A column of 64-bit integers becomes pairs of a literal of 1 to 3 bytes and a copy of the other bytes. The position of a tag
is known only after the tag before it is decoded, so the time from one tag to the next determines the time per pair. There is
a function for each kind of data, and one that decompresses any element:

    _integer_pairs   reads a pair with one load, and has a branch for each size of the literal. The processor predicts the
                     branch, so it starts the next load before this one has ended.
    _short_elements  has few branches, because the sizes in compressed strings are hard to predict, and copies whole blocks
                     of 16 bytes (see ``block_copies``)
    _element         any element

Positions are unsigned, because numba adds a test for negative ones to each access by a signed position.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import uint64, uintp

from kquery_spark.kernels.loops.block_copies import copy_from_output, copy_literal, copy_words
from kquery_spark.kernels.loops.memory import load32, load64, store64
from kquery_spark.kernels.loops.parquet_runs import varint

_ONE, _TWO, _THREE, _FOUR, _FIVE = uintp(1), uintp(2), uintp(3), uintp(4), uintp(5)
_SEVEN, _WORD, _TWO_WORDS = uintp(7), uintp(8), uintp(16)
_BYTE_BITS = uintp(8)
_LITERAL, _NEAR_COPY, _COPY, _FAR_COPY, _KIND_MASK = uintp(0), uintp(1), uintp(2), uintp(3), uintp(3)
_LITERAL_OF_1, _LITERAL_OF_2, _LITERAL_OF_3 = uintp(0), uintp(4), uintp(8)  # tags of literals of 1 to 3 bytes
_MAX_SIZE_IN_TAG, _COPY_SIZE_MASK, _OFFSET_IN_TAG = uintp(60), uintp(0x3F), uintp(0xE0)
_BYTE, _TWO_BYTES = uintp(0xFF), uintp(0xFFFF)
_PAIR_BYTES = uintp(
    32
)  # input bytes that may be read for a pair: two tags, a literal of 16 bytes, an offset's word
_RAW_PAIR_BYTES = uintp(
    80
)  # output bytes that may be written for a pair: a literal of 16 bytes, a copy of 64
# A call of ``_integer_pairs`` that writes at least this number of raw bytes shows that the data are integers.
_MIN_RUN_BYTES = uintp(64)
# The number of raw bytes that the other functions decompress before ``_integer_pairs`` is tried again.
_MIN_RETRY_BYTES, _MAX_RETRY_BYTES = uintp(8), uintp(4096)


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
def _copy_after(literal_size: Any, word: Any) -> Any:
    """Decode the copy after a literal of 1 to 3 bytes; returns its kind, and its size and offset if the kind is 1 or 2.

    ``word`` has the eight bytes from the literal's tag on. Kinds 1 and 2 often alternate at random, so the function computes
    with masks instead of branches. ``is_near`` (kind - 2) is -1, a mask of ones, for kind 1, and 0 for kind 2. So
    ``x ^ (is_near & (x ^ y))`` is y for kind 1, and x for kind 2.
    """
    copy = word >> (_BYTE_BITS * (literal_size + _ONE))
    kind = copy & _KIND_MASK
    is_near = kind - _COPY
    size_mask = _COPY_SIZE_MASK ^ (is_near & (_COPY_SIZE_MASK ^ _SEVEN))
    size = ((copy >> _TWO) & size_mask) + _ONE + (is_near & _THREE)
    upper_bits = (copy & _OFFSET_IN_TAG & is_near) << _THREE
    offset = (copy >> _BYTE_BITS) & (_TWO_BYTES ^ (is_near & (_TWO_BYTES ^ _BYTE))) | upper_bits
    return kind, size, offset


@numba.njit(inline="always")
def _is_integer_pair(raw_size: Any, kind: Any, offset: Any, raw_before: Any) -> Any:
    """Return whether ``_write_pair`` can write a pair. raw_before: how many raw bytes come before the pair.

    Kinds are unsigned, so ``kind - 1 <= 1`` is true only for kinds 1 and 2: 0 - 1 wraps around to a large number.
    """
    return kind - _NEAR_COPY <= _ONE and raw_size <= _TWO_WORDS and offset >= _WORD and offset <= raw_before


@numba.njit(inline="always")
def _write_pair(out: Any, to: Any, word: Any, literal_size: Any, raw_size: Any, offset: Any) -> None:
    """Write a literal and a copy of together at most 16 bytes, the first eight bytes in one word.

    Often, a later pair copies from this one. Its load is fast only if one store wrote all eight bytes.
    """
    mask = (_ONE << (_BYTE_BITS * literal_size)) - _ONE
    store64(out, to, ((word >> _BYTE_BITS) & mask) | (load64(out, to - offset) & ~mask))
    if raw_size > _WORD:
        store64(out, to + _WORD, load64(out, to + _WORD - offset))


@numba.njit
def _integer_pairs(data: Any, at: Any, end: Any, out: Any, start: Any, to: Any, out_end: Any) -> Any:
    """Decompress pairs of a literal of 1 to 3 bytes and a copy until another element follows.

    Returns the position of that element and the position of its raw bytes. After the 64-bit integer 1000 (``e8 03 00 ..``),
    1001 is the pair ``00 e9`` and ``0d 08``: the literal ``e9``, and a copy of 7 bytes from 8 bytes back.

    A pair takes 1 byte and the literal, and 2 bytes for a copy of kind 1 or 3 bytes for kind 2. So ``at`` advances by
    the size of the literal plus 2 plus the kind.

    The branches repeat their code on purpose. If they share a function that also checks the pair, or the additions after
    them, the position of the next pair depends on this tag again, and a pair takes 40 % longer.
    """
    while at + _PAIR_BYTES <= end and to + _RAW_PAIR_BYTES <= out_end:
        word = load64(data, at)
        tag = word & _BYTE
        if tag == _LITERAL_OF_2:
            kind, size, offset = _copy_after(_TWO, word)
            if not _is_integer_pair(_TWO + size, kind, offset, to - start):
                break
            _write_pair(out, to, word, _TWO, _TWO + size, offset)
            at += _FOUR + kind
            to += _TWO + size
        elif tag == _LITERAL_OF_1:
            kind, size, offset = _copy_after(_ONE, word)
            if not _is_integer_pair(_ONE + size, kind, offset, to - start):
                break
            _write_pair(out, to, word, _ONE, _ONE + size, offset)
            at += _THREE + kind
            to += _ONE + size
        elif tag == _LITERAL_OF_3:
            kind, size, offset = _copy_after(_THREE, word)
            if not _is_integer_pair(_THREE + size, kind, offset, to - start):
                break
            _write_pair(out, to, word, _THREE, _THREE + size, offset)
            at += _FIVE + kind
            to += _THREE + size
        else:
            break
    return at, to


@numba.njit
def _short_elements(data: Any, at: Any, end: Any, out: Any, start: Any, to: Any, out_end: Any) -> Any:
    """Decompress short elements until another element follows.

    Returns the position of that element in the input, and the position of its raw bytes in the output.

    Short elements are literals of up to 16 bytes, and copies of kind 1 or 2 from at least 8 bytes back. Those near the end
    of the input or of the output are decompressed by ``_element``, because this function reads and writes whole blocks.
    """
    while at + _PAIR_BYTES <= end and to + _RAW_PAIR_BYTES <= out_end:
        tag = uintp(data[at])
        if tag & _KIND_MASK == _LITERAL:
            size = (tag >> _TWO) + _ONE
            if size > _TWO_WORDS:
                break
            copy_words(out, to, data, at + _ONE)
            at += _ONE + size
            to += size
            # Snappy's compressor writes a copy after each literal. Another compressor may write a literal after a literal,
            # for which no branch below is taken.
            tag = uintp(data[at])
        if tag & _KIND_MASK == _NEAR_COPY:
            offset = ((tag >> _FIVE) << _BYTE_BITS) | uintp(data[at + _ONE])
            if offset < _WORD or offset > to - start:
                break
            copy_words(out, to, out, to - offset)
            at += _TWO
            to += ((tag >> _TWO) & _SEVEN) + _FOUR
        elif tag & _KIND_MASK == _COPY:
            size = (tag >> _TWO) + _ONE
            offset = load32(data, at + _ONE) & _TWO_BYTES
            if offset < _WORD or offset > to - start:
                break
            for copied in range(uintp(0), size, _TWO_WORDS):
                copy_words(out, to + copied, out, to + copied - offset)
            at += _THREE
            to += size
        elif tag & _KIND_MASK == _FAR_COPY:
            break
    return at, to


@numba.njit
def _element(data: Any, at: Any, end: Any, out: Any, start: Any, to: Any, out_end: Any) -> Any:
    """Decompress one element; returns whether it is valid, the position of the next one, and that of its raw bytes."""
    tag = uintp(data[at])
    at += _ONE
    kind, size = tag & _KIND_MASK, (tag >> _TWO) + _ONE
    if kind == _LITERAL:
        if size > _MAX_SIZE_IN_TAG:
            size_bytes = size - _MAX_SIZE_IN_TAG
            if size_bytes > end - at:
                return False, at, to
            mask = (_ONE << (_BYTE_BITS * size_bytes)) - _ONE
            size = (uintp(_load32_or_zeros(data, at)) & mask) + _ONE
            at += size_bytes
        if size > end - at or size > out_end - to:
            return False, at, to
        copy_literal(out, to, data, at, size)
        return True, at + size, to + size
    word = uintp(_load32_or_zeros(data, at))
    if kind == _NEAR_COPY:
        size = ((tag >> _TWO) & _SEVEN) + _FOUR
        offset = ((tag >> _FIVE) << _BYTE_BITS) | (word & _BYTE)
        at += _ONE
    elif kind == _COPY:
        offset = word & _TWO_BYTES
        at += _TWO
    else:
        offset = word
        at += _FOUR
    if offset == uintp(0) or offset > to - start or size > out_end - to:
        return False, at, to
    copy_from_output(out, to, offset, size)
    return True, at, to + size


@numba.njit
def snappy_block(data: Any, at: Any, end: Any, out: Any, to: Any, raw_size: Any) -> Any:
    """Decompress the block ``data[at:end]`` to ``out[to : to + raw_size]``; False if it is damaged or has another size.

    ``out`` must have ``PADDING`` bytes after the block.
    """
    declared_size, at = varint(data, at, end)
    if declared_size != raw_size:
        return False
    start, out_end, retry_bytes = to, to + raw_size, _MIN_RETRY_BYTES
    while at < end:
        before = to
        at, to = _integer_pairs(data, at, end, out, start, to, out_end)
        # After a run of pairs, try ``_integer_pairs`` again 8 raw bytes later, after about one other element.
        # Otherwise, the data are probably not integers: double the distance to the next try, up to 4,096 bytes.
        is_run = to - before >= _MIN_RUN_BYTES
        retry_bytes = _MIN_RETRY_BYTES if is_run else min(_TWO * retry_bytes, _MAX_RETRY_BYTES)
        next_try = to + retry_bytes
        while at < end and to < next_try:
            # ``_short_elements`` stops ``_RAW_PAIR_BYTES`` before the given end, hence soon after ``next_try``.
            at, to = _short_elements(data, at, end, out, start, to, min(out_end, next_try + _RAW_PAIR_BYTES))
            if at < end and to < next_try:
                is_valid, at, to = _element(data, at, end, out, start, to, out_end)
                if not is_valid:
                    return False
    return to == out_end and at == end
