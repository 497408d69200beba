"""Lines of delimited text cut into fields.

Eight bytes are looked at together and without a branch, as simdjson does with 64,
which takes a fifth of the time of a state machine that looks at one after the other.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint8, uint64, uintp

from kquery_spark.sources.kernels.memory import load64, store64

SLACK = 8  # places behind the last one that are written to

_NEWLINE = uint8(10)
_ONE, _FOUR, _EIGHT = uintp(1), uintp(4), uintp(8)
_BYTE = uint64(0xFF)
_EACH, _LOW_BITS, _GATHER = uint64(0x0101010101010101), uint64(0x7F7F7F7F7F7F7F7F), uint64(0x0102040810204080)
_BITS = [[i for i in range(8) if number >> i & 1] for number in range(256)]
_PLACES = np.array([int.from_bytes(bytes(bits), "little") for bits in _BITS], np.uint64)
_COUNTS = np.array([len(bits) for bits in _BITS], np.uintp)

_Text = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_Bytes, _Numbers = numba.uint8[::1], numba.int32[::1]


@numba.njit(inline="always")
def _zeros(eight: Any) -> Any:
    """The highest bit of each byte that is zero."""
    return ~(((eight & _LOW_BITS) + _LOW_BITS) | eight | _LOW_BITS)


@numba.njit(int64(_Text, uint8, int64, _Numbers), cache=True, nogil=True)
def separators(text: Any, delimiter: Any, width: Any, out: Any) -> Any:
    """Where the fields of lines of ``width`` fields end; gives the number of lines, -1 where one has more or fewer.

    out: of ``SLACK`` places more than there are bytes. A line that is not ended ends with the text.
    """
    count = at = uintp(0)
    size = uintp(len(text))
    delimiters, newlines = uint64(delimiter) * _EACH, uint64(_NEWLINE) * _EACH
    while at + _EIGHT <= size:
        eight = load64(text, at)
        found = (_zeros(eight ^ delimiters) | _zeros(eight ^ newlines)) >> uint64(7)
        which = uintp((found * _GATHER) >> uint64(56))  # a bit for each of the bytes
        places, several = _PLACES[which], _COUNTS[which]
        for i in range(4):
            out[count + uintp(i)] = at + uintp((places >> uint64(8 * i)) & _BYTE)
        if several > _FOUR:
            for i in range(4, 8):
                out[count + uintp(i)] = at + uintp((places >> uint64(8 * i)) & _BYTE)
        count += several
        at += _EIGHT
    for i in range(at, size):
        byte = text[uintp(i)]
        out[count] = i
        count += uintp((byte == delimiter) | (byte == _NEWLINE))
    if size and text[size - _ONE] != _NEWLINE:
        out[count] = size
        count += _ONE
    fields = uintp(width)
    lines = count // fields
    if lines * fields != count:
        return int64(-1)
    place, start = uintp(0), int64(0)
    for _ in range(lines):
        inner = False
        for _ in range(fields - _ONE):
            inner |= text[uintp(out[place])] == _NEWLINE
            place += _ONE
        last = uintp(out[place])
        if inner or (last < size and text[last] != _NEWLINE) or int64(last) == start:
            return int64(-1)
        start = int64(last) + 1
        place += _ONE
    return int64(lines)


@numba.njit(int64(_Text, _Numbers, int64, int64, int64, _Numbers, _Bytes), cache=True, nogil=True)
def field_texts(text: Any, ends: Any, width: Any, lines: Any, column: Any, offsets: Any, out: Any) -> Any:
    """The texts of one column one behind the other, and where each begins and the last one ends; gives their bytes.

    ends: as ``separators`` gives them. offsets: of one place more than lines. out: of as many bytes as the texts have, which
    are fewer than ``text`` has, and ``SLACK``.
    """
    done = uintp(0)
    size = uintp(len(text))
    place, fields = uintp(column), uintp(width)
    for line in range(lines):
        offsets[uintp(line)] = done
        at = uintp(ends[place - _ONE] + 1) if place else uintp(0)
        end = uintp(ends[place])
        place += fields
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
