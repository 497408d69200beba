"""Lines of delimited text cut into fields.

Eight bytes are looked at together and without a branch, as simdjson does with 64,
which takes a fifth of the time of a state machine that looks at one after the other.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import boolean, int64, uint8, uint64, uintp

from kquery_spark.kernels.loops.memory import load64, store64

SLACK = 8  # items behind the last one that are written to

_NEWLINE = uint8(10)
_ONE, _FOUR, _EIGHT = uintp(1), uintp(4), uintp(8)
_NO, _SEVEN, _BYTE = uintp(0), uintp(7), uintp(0xFF)
_SEVEN_BITS, _BYTES = uint64(7), uint64(0xFF)
_EACH, _LOW_BITS, _GATHER = uint64(0x0101010101010101), uint64(0x7F7F7F7F7F7F7F7F), uint64(0x0102040810204080)
_BITS = [[i for i in range(8) if number >> i & 1] for number in range(256)]
_OFFSETS = np.array([int.from_bytes(bytes(bits), "little") for bits in _BITS], np.uint64)
_COUNTS = np.array([len(bits) for bits in _BITS], np.uintp)
# for each bit, whether an odd number of those up to it are set
_ODD = np.array([sum(sum(b <= i for b in bits) % 2 << i for i in range(8)) for bits in _BITS], np.uintp)

_Text = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_Bytes, _Numbers = numba.uint8[::1], numba.int32[::1]


@numba.njit(inline="always")
def _zeros(eight: Any) -> Any:
    """The highest bit of each byte that is zero."""
    return ~(((eight & _LOW_BITS) + _LOW_BITS) | eight | _LOW_BITS)


@numba.njit(inline="always")
def _bits(eight: Any) -> Any:
    """A bit for each byte whose highest bit is set, of those that ``_zeros`` gives."""
    return uintp(((eight >> _SEVEN_BITS) * _GATHER) >> uint64(56))


@numba.njit(inline="always")
def _last(text: Any, at: Any) -> Any:
    """The last bytes, fewer than eight, as ``load64`` gives eight."""
    eight = uint64(0)
    for i in range(uintp(len(text)) - at):
        eight |= uint64(text[at + uintp(i)]) << uint64(8 * i)
    return eight


@numba.njit(int64(_Text, uint8, int64, boolean, int64, _Numbers), cache=True, nogil=True)
def separators(text: Any, delimiter: Any, quote: Any, empty: Any, width: Any, out: Any) -> Any:
    """Where the fields of lines of ``width`` fields end; gives the number of lines, -1 for lines that are not so simple.

    They have more or fewer fields, or quotes that stand elsewhere than at both ends of a field, or around a line's end. A
    line that is not ended ends with the text. quote: -1 for none. empty: whether two quotes may have nothing between
    them. out: ``SLACK`` items longer than there are bytes.
    """
    count = at = uintp(0)
    size = uintp(len(text))
    delimiters, newlines, quotes = uint64(delimiter) * _EACH, uint64(_NEWLINE) * _EACH, uint64(quote) * _EACH
    wrong = inside = was_quote = was_opening = uintp(0)
    was_end = _ONE
    while at < size:
        is_whole = at + _EIGHT <= size
        eight = load64(text, at) if is_whole else _last(text, at)
        valid = _BYTE if is_whole else (_ONE << (size - at)) - _ONE
        zeros, ended = _zeros(eight ^ delimiters), _zeros(eight ^ newlines)
        ends = _bits(zeros | ended) & valid
        if quote >= 0:
            marks = _bits(_zeros(eight ^ quotes)) & valid
            # a bit for each byte behind an odd number of quotes, an opening one included
            within = (_ODD[marks] ^ inside) & _BYTE
            opening, closing = marks & within, marks & ~within
            wrong |= _bits(ended) & valid & within
            ends &= ~within
            wrong |= opening & ~((ends << _ONE) | was_end)
            wrong |= ((closing << _ONE) | was_quote) & valid & ~ends
            if not empty:
                wrong |= closing & ((opening << _ONE) | was_opening)
            was_end, was_quote, was_opening = ends >> _SEVEN, closing >> _SEVEN, opening >> _SEVEN
            inside = _NO - (within >> _SEVEN)
        offsets, several = _OFFSETS[ends], _COUNTS[ends]
        for i in range(4):
            out[count + uintp(i)] = at + uintp((offsets >> uint64(8 * i)) & _BYTES)
        if several > _FOUR:
            for i in range(4, 8):
                out[count + uintp(i)] = at + uintp((offsets >> uint64(8 * i)) & _BYTES)
        count += several
        at += _EIGHT
    if wrong or inside:
        return int64(-1)
    if size and text[size - _ONE] != _NEWLINE:
        out[count] = size
        count += _ONE
    fields = uintp(width)
    lines = count // fields
    if lines * fields != count:
        return int64(-1)
    index, start = uintp(0), int64(0)
    for _ in range(lines):
        inner = False
        for _ in range(fields - _ONE):
            inner |= text[uintp(out[index])] == _NEWLINE
            index += _ONE
        last = uintp(out[index])
        if inner or (last < size and text[last] != _NEWLINE) or int64(last) == start:
            return int64(-1)
        start = int64(last) + 1
        index += _ONE
    return int64(lines)


@numba.njit(int64(_Text, _Numbers, int64, int64, int64, int64, _Numbers, _Bytes), cache=True, nogil=True)
def field_strings(
    text: Any, ends: Any, quote: Any, width: Any, lines: Any, column: Any, offsets: Any, out: Any
) -> Any:
    """The strings of one column, without quotes around them, and where each begins and the last one ends; gives their bytes.

    ends: as ``separators`` gives them. offsets: one item longer than lines. out: of as many bytes as the strings have, which
    are fewer than ``text`` has, and ``SLACK``.
    """
    done = uintp(0)
    size = uintp(len(text))
    index, fields = uintp(column), uintp(width)
    for line in range(lines):
        offsets[uintp(line)] = done
        at = uintp(ends[index - _ONE] + 1) if index else uintp(0)
        end = uintp(ends[index])
        index += fields
        if at < end and int64(text[at]) == quote:
            at += _ONE
            end -= _ONE
        if at + _EIGHT <= size:
            store64(out, done, load64(text, at))
        else:
            for i in range(min(end - at, _EIGHT)):
                out[done + uintp(i)] = text[at + uintp(i)]
        for i in range(at + _EIGHT, end):
            out[done + (uintp(i) - at)] = text[uintp(i)]
        done += end - at
    offsets[uintp(lines)] = done
    return int64(done)
