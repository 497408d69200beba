"""Splits lines of delimited text into fields.

The scanner examines eight bytes at a time without a branch, as simdjson does with 64. This takes a fifth of the time of a
state machine that examines one byte after the other. It represents properties of the eight bytes as eight bits, the lowest
for the first byte. For example, with the delimiter "," and the bytes ``ab,"c,d"``:

- the delimiters are bits 2 and 5 (``0b00100100``), the quotes bits 3 and 7 (``marks``, ``0b10001000``);
- a byte is inside of quotes if an odd number of quotes lies at or before it: bits 3 to 6 (``within``, found in ``_ODD``);
- removing these from the delimiters leaves bit 2, the only field that ends here (``ends``).

Whether the block ended inside of quotes is carried over to the next eight bytes.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import boolean, int64, uint8, uint64, uintp

from kquery_spark.kernels.loops.memory import load64, store64

SLACK = 8  # additional items that output arrays need, since stores always write several items

_NEWLINE = uint8(10)
_ONE, _FOUR, _EIGHT = uintp(1), uintp(4), uintp(8)
_NO, _SEVEN, _BYTE = uintp(0), uintp(7), uintp(0xFF)
_SEVEN_BITS, _BYTES = uint64(7), uint64(0xFF)
_EACH, _LOW_BITS, _GATHER = uint64(0x0101010101010101), uint64(0x7F7F7F7F7F7F7F7F), uint64(0x0102040810204080)
# Tables for all values of eight bits: the positions of the set bits (one per byte of a word), and how many are set.
_BITS = [[i for i in range(8) if number >> i & 1] for number in range(256)]
_OFFSETS = np.array([int.from_bytes(bytes(bits), "little") for bits in _BITS], np.uint64)
_COUNTS = np.array([len(bits) for bits in _BITS], np.uintp)
# Bit i is set if an odd number of the bits 0 to i are set.
_ODD = np.array([sum(sum(b <= i for b in bits) % 2 << i for i in range(8)) for bits in _BITS], np.uintp)

_Text = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_Bytes, _Numbers = numba.uint8[::1], numba.int32[::1]


@numba.njit(inline="always")
def _zeros(eight: Any) -> Any:
    """Set the highest bit of each byte that is zero, and clear all other bits."""
    return ~(((eight & _LOW_BITS) + _LOW_BITS) | eight | _LOW_BITS)


@numba.njit(inline="always")
def _bits(eight: Any) -> Any:
    """Gather the highest bits of eight bytes, as ``_zeros`` returns them, into the lowest eight bits."""
    return uintp(((eight >> _SEVEN_BITS) * _GATHER) >> uint64(56))


@numba.njit(inline="always")
def _load_tail(text: Any, at: Any) -> Any:
    """Load the last bytes, fewer than eight, as ``load64`` loads eight; the missing ones are zero."""
    eight = uint64(0)
    for i in range(uintp(len(text)) - at):
        eight |= uint64(text[at + uintp(i)]) << uint64(8 * i)
    return eight


@numba.njit(int64(_Text, uint8, int64, boolean, int64, _Numbers), cache=True, nogil=True)
def separators(text: Any, delimiter: Any, quote: Any, empty: Any, width: Any, out: Any) -> Any:
    """Write the end of each field to ``out``; return the number of lines, or -1 if the text needs a full parser.

    A full parser is needed if a line does not have ``width`` fields or is empty, if quotes are not at both ends of a field,
    or if a quoted field contains a line end. The last line need not have a line end. quote: -1 without quotes.
    empty: whether an empty quoted field is allowed. out: needs ``SLACK`` more items than ``text`` has bytes.
    """
    count = at = uintp(0)
    size = uintp(len(text))
    delimiters, newlines, quotes = uint64(delimiter) * _EACH, uint64(_NEWLINE) * _EACH, uint64(quote) * _EACH
    wrong = inside = was_quote = was_opening = uintp(0)
    was_end = _ONE
    while at < size:
        is_whole = at + _EIGHT <= size
        eight = load64(text, at) if is_whole else _load_tail(text, at)
        valid = _BYTE if is_whole else (_ONE << (size - at)) - _ONE
        zeros, ended = _zeros(eight ^ delimiters), _zeros(eight ^ newlines)
        ends = _bits(zeros | ended) & valid
        if quote >= 0:
            marks = _bits(_zeros(eight ^ quotes)) & valid
            # bytes inside of quotes, including the opening quote but not the closing one
            within = (_ODD[marks] ^ inside) & _BYTE
            opening, closing = marks & within, marks & ~within
            wrong |= _bits(ended) & valid & within  # a line ends inside of quotes
            ends &= ~within
            wrong |= opening & ~(
                (ends << _ONE) | was_end
            )  # an opening quote is not the first byte of a field
            wrong |= ((closing << _ONE) | was_quote) & valid & ~ends  # bytes follow a closing quote
            if not empty:
                wrong |= closing & ((opening << _ONE) | was_opening)
            # carry the state of the last byte over to the next eight bytes
            was_end, was_quote, was_opening = ends >> _SEVEN, closing >> _SEVEN, opening >> _SEVEN
            inside = _NO - (within >> _SEVEN)
        # Always write four ends, which is cheaper than a loop of unknown length; the next block overwrites excess ones.
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
    # Check the shape: every ``width``-th field ends a line, and no other field does.
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
    """Copy the strings of one column, without quotes, to ``out`` and their offsets to ``offsets``; return the bytes copied.

    ends: the field ends from ``separators``. offsets: needs one more item than there are lines. out: needs ``SLACK`` more
    bytes than the strings have.
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
        # Most fields are short, so copy eight bytes at once; the next string overwrites excess bytes.
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
