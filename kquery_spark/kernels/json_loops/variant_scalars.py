"""Encodes strings and numbers of JSON documents as scalars of variants."""

from __future__ import annotations

from typing import Any

import numba
from numba import int64, uint64

from kquery_spark.kernels.json_bytes import BACKSLASH, LOWER_U, MINUS, POINT, QUOTE, SINGLE_QUOTE, SPACE, ZERO
from kquery_spark.kernels.json_loops.scan import NULL, ODD, VALUE
from kquery_spark.kernels.json_loops.tokens import INTEGER, SIMPLE, code_unit, is_digit
from kquery_spark.kernels.json_loops.write import Bytes, write_character

_MAX_DIGITS = 38
_ESCAPED = SIMPLE.copy()
_ESCAPED[SINGLE_QUOTE] = 0  # PARSE_JSON does not accept an escaped single quote


@numba.njit(cache=True, nogil=True)
def write_text(raw: Any, at: Any, end: Any, out: Any, done: Any) -> Any:
    """Write a string without its escapes; ``at`` is after the opening quote.

    Returns a status, the position after the closing quote, and the end of the output.
    """
    while at < end:
        byte = raw[at]
        if byte == QUOTE:
            return VALUE, at + 1, done
        if byte < SPACE:
            return NULL, at, done
        if byte != BACKSLASH:
            out[done] = byte
            at, done = at + 1, done + 1
            continue
        if at + 1 >= end:
            return NULL, at, done
        letter = raw[at + 1]
        if letter != LOWER_U:
            if _ESCAPED[letter] == 0:
                return NULL, at, done
            out[done] = _ESCAPED[letter]
            at, done = at + 2, done + 1
            continue
        code = code_unit(raw, at + 2, end)
        if code < 0:
            return NULL, at, done
        at += 6
        if code >= 0xD800 and code < 0xE000:
            is_pair = code < 0xDC00 and at + 1 < end and raw[at] == BACKSLASH and raw[at + 1] == LOWER_U
            low = code_unit(raw, at + 2, end) if is_pair else int64(-1)
            if low < 0xDC00 or low > 0xDFFF:
                return ODD, at, done
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            at += 6
        done = write_character(code, out, done)
    return NULL, at, done


@numba.njit(int64(Bytes, int64, int64, int64), cache=True, nogil=True)
def write_number(out: Any, done: Any, number: Any, size: Any) -> Any:
    """Write the ``size`` lowest bytes of a number; return the end of the output."""
    for i in range(size):
        out[done + i] = (number >> (8 * i)) & 0xFF
    return done + size


@numba.njit(cache=True, nogil=True)
def write_string(raw: Any, at: Any, end: Any, out: Any, done: Any) -> Any:
    """Write a string value; return a status, the end of the string, and the end of the output.

    Most strings are short, so the string is written behind a header of one byte. If it has 64 bytes or more, it is moved to
    make room for the header of five bytes.
    """
    status, at, stop = write_text(raw, at, end, out, done + 1)
    if status != VALUE:
        return status, at, done
    size = stop - done - 1
    if size < 64:
        out[done] = (size << 2) | 1
        return VALUE, at, stop
    for i in range(size - 1, -1, -1):
        out[done + 5 + i] = out[done + 1 + i]
    out[done] = 16 << 2
    write_number(out, done + 1, size, 4)
    return VALUE, at, done + 5 + size


@numba.njit(cache=True, nogil=True)
def write_numeral(raw: Any, at: Any, end: Any, kind: Any, out: Any, done: Any) -> Any:
    """Write a number as an integer or a decimal, or leave a hole for a double; return the end, and whether it left a hole.

    The digits are accumulated in 128 bits (``high`` and ``low``). A number with an exponent, or with more than 38 digits,
    is a double; numba has no correctly rounding parser, so the caller fills the hole.
    """
    high, low = uint64(0), uint64(0)
    digits = scale = int64(0)
    is_negative, is_plain, has_point = raw[at] == MINUS, True, False
    for i in range(at + (1 if is_negative else 0), end):
        byte = raw[i]
        if byte == POINT:
            has_point = True
            continue
        if not is_digit(byte):
            is_plain = False
            break
        scale += has_point
        if digits or byte != ZERO:
            digits += 1
        if digits > _MAX_DIGITS:
            break
        # times 10 plus the digit: multiply the 32-bit halves of the lower word and carry into the upper word
        first = (low & uint64(0xFFFFFFFF)) * uint64(10) + uint64(byte - ZERO)
        second = (low >> uint64(32)) * uint64(10) + (first >> uint64(32))
        low = (second << uint64(32)) | (first & uint64(0xFFFFFFFF))
        high = high * uint64(10) + (second >> uint64(32))
    if not is_plain or digits > _MAX_DIGITS or scale > _MAX_DIGITS:
        out[done] = 7 << 2
        return done + 9, True
    if is_negative:
        low = ~low + uint64(1)
        high = ~high + uint64(1 if low == 0 else 0)
    number = int64(low)
    if kind == INTEGER and int64(high) == (number >> 63):
        size = 1 if -128 <= number < 128 else 2 if -32768 <= number < 32768 else 8
        if size == 8 and -2147483648 <= number < 2147483648:
            size = 4
        out[done] = (3 if size == 1 else 4 if size == 2 else 5 if size == 4 else 6) << 2
        return write_number(out, done + 1, number, size), False
    size = 4 if digits <= 9 and scale <= 9 else 8 if digits <= 18 and scale <= 18 else 16
    out[done] = (8 if size == 4 else 9 if size == 8 else 10) << 2
    out[done + 1] = scale
    done = write_number(out, done + 2, number, min(size, 8))
    if size == 16:
        done = write_number(out, done, int64(high), 8)
    return done, False
