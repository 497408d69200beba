"""Writes JSON values as GET_JSON_OBJECT returns them: strings without escapes, containers as Jackson copies them.

Invariant: a value never becomes longer than its bytes in the document, so ``out``, which is as large as all documents, has
room for all values, and no function checks that. Strings that could become longer return -1 instead, and Python writes them.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import boolean, int64

from kquery_spark.kernels.json_bytes import (
    BACKSLASH,
    CARRIAGE_RETURN,
    LINE_FEED,
    LOWER_U,
    MINUS,
    POINT,
    QUOTE,
    SPACE,
    TAB,
    ZERO,
)
from kquery_spark.kernels.json_loops.tokens import (
    CONTAINER,
    ESCAPED,
    FLOAT,
    INTEGER,
    SIMPLE,
    STRING,
    Text,
    code_unit,
    is_digit,
    number_end,
    string_end,
)

_MAX_DIGITS = 15  # Java prints the double of a decimal with at most 15 digits with the same digits
_MAX_PLAIN_DIGITS = 7  # digits before the point: Java prints 1e7 and more with an exponent
_MAX_NUMBER_BYTES = 400
_SHORT = np.zeros(32, np.uint8)  # the escape letter of each control character; 0 if there is none
for _letter, _character in zip(b"btnfr", b"\b\t\n\f\r", strict=True):
    _SHORT[_character] = _letter
_UPPER = np.frombuffer(b"0123456789ABCDEF", np.uint8)

Bytes = numba.uint8[::1]


@numba.njit(boolean(Text, int64, int64), cache=True, nogil=True)
def _prints_as_written(raw: Any, at: Any, end: Any) -> Any:
    """Return True if Java prints the double of a number exactly as the number is spelled.

    For example, it does so for 1.5 and 0.001, but not for 1.50 (1.5), 0.0001 (1.0E-4) or 1e3 (1000.0).
    """
    if raw[at] == MINUS:
        at += 1
    start = at
    while at < end and is_digit(raw[at]):
        at += 1
    whole = at - start
    if at >= end or raw[at] != POINT:
        return False
    point = at
    at += 1
    while at < end and is_digit(raw[at]):
        at += 1
    places = at - point - 1
    if at < end or whole + places > _MAX_DIGITS or whole > _MAX_PLAIN_DIGITS:
        return False
    if raw[end - 1] == ZERO and places > 1:
        return False
    if raw[start] != ZERO or (places == 1 and raw[end - 1] == ZERO):
        return True
    for i in range(1, min(places, 3) + 1):  # noqa: SIM110  Java prints an exponent below 0.001
        if raw[point + i] != ZERO:
            return True
    return False


@numba.njit(int64(int64, Bytes, int64), cache=True, nogil=True)
def write_character(code: Any, out: Any, done: Any) -> Any:
    """Write a code point in UTF-8; return the end of the output."""
    if code < 0x80:
        out[done] = code
        return done + 1
    if code < 0x800:
        out[done] = 0xC0 | (code >> 6)
        out[done + 1] = 0x80 | (code & 0x3F)
        return done + 2
    if code < 0x10000:
        out[done] = 0xE0 | (code >> 12)
        out[done + 1] = 0x80 | ((code >> 6) & 0x3F)
        out[done + 2] = 0x80 | (code & 0x3F)
        return done + 3
    out[done] = 0xF0 | (code >> 18)
    out[done + 1] = 0x80 | ((code >> 12) & 0x3F)
    out[done + 2] = 0x80 | ((code >> 6) & 0x3F)
    out[done + 3] = 0x80 | (code & 0x3F)
    return done + 4


@numba.njit(int64(Text, int64), cache=True, nogil=True)
def _escaped_code(raw: Any, at: Any) -> Any:
    """Return the character of the escape whose letter is at ``at``."""
    return code_unit(raw, at + 1, at + 5) if raw[at] == LOWER_U else int64(SIMPLE[raw[at]])


@numba.njit(int64(Text, int64, int64, Bytes, int64), cache=True, nogil=True)
def _write_unescaped(raw: Any, at: Any, end: Any, out: Any, done: Any) -> Any:
    """Write a string without its escapes; return the end of the output, or -1 if it has surrogates."""
    while at < end:
        if raw[at] != BACKSLASH:
            out[done] = raw[at]
            done += 1
            at += 1
            continue
        code = _escaped_code(raw, at + 1)
        if code >= 0xD800 and code < 0xE000:
            return -1
        done = write_character(code, out, done)
        at += 6 if raw[at + 1] == LOWER_U else 2
    return done


@numba.njit(int64(Text, int64, int64, Bytes, int64), cache=True, nogil=True)
def _write_string(raw: Any, at: Any, end: Any, out: Any, done: Any) -> Any:
    """Write the characters between quotes as Jackson escapes them; return the end of the output.

    Returns -1 for strings that may become longer (control and four-byte characters), since ``out`` has no room for these.
    """
    while at < end:
        byte = raw[at]
        if byte < SPACE or byte >= 0xF0:
            return -1
        if byte != BACKSLASH:
            out[done] = byte
            done += 1
            at += 1
            continue
        code = _escaped_code(raw, at + 1)
        at += 6 if raw[at + 1] == LOWER_U else 2
        if code >= 0xD800 and code < 0xE000:
            return -1
        if code == QUOTE or code == BACKSLASH:
            out[done] = BACKSLASH
            out[done + 1] = code
            done += 2
        elif code >= SPACE:
            done = write_character(code, out, done)
        elif _SHORT[code]:
            out[done] = BACKSLASH
            out[done + 1] = _SHORT[code]
            done += 2
        else:
            out[done] = BACKSLASH
            out[done + 1] = LOWER_U
            out[done + 2] = out[done + 3] = ZERO
            out[done + 4] = _UPPER[code >> 4]
            out[done + 5] = _UPPER[code & 15]
            done += 6
    return done


@numba.njit(int64(Text, int64, int64, int64, Bytes, int64), cache=True, nogil=True)
def _write_number(raw: Any, at: Any, end: Any, kind: Any, out: Any, done: Any) -> Any:
    """Write a number as Java prints it; return the end of the output, or -1 if Java may print it differently."""
    if end - at > _MAX_NUMBER_BYTES or (kind == FLOAT and not _prints_as_written(raw, at, end)):
        return -1
    if kind == INTEGER and end - at == 2 and raw[at] == MINUS and raw[at + 1] == ZERO:
        at += 1
    for i in range(at, end):
        out[done] = raw[i]
        done += 1
    return done


@numba.njit(int64(Text, int64, int64, Bytes, int64), cache=True, nogil=True)
def write_container(raw: Any, at: Any, end: Any, out: Any, done: Any) -> Any:
    """Write a well-formed object or array without white space; return the end of the output, or -1 if Python has to."""
    while at < end:
        byte = raw[at]
        if byte == QUOTE:
            last = string_end(raw, at + 1, end) >> 1
            out[done] = QUOTE
            done = _write_string(raw, at + 1, last, out, done + 1)
            if done < 0:
                return -1
            out[done] = QUOTE
            done += 1
            at = last + 1
        elif byte == MINUS or is_digit(byte):
            packed = number_end(raw, at, end)
            kind = int64(FLOAT if packed & 1 else INTEGER)
            done = _write_number(raw, at, packed >> 1, kind, out, done)
            if done < 0:
                return -1
            at = packed >> 1
        else:
            if not (byte == SPACE or byte == LINE_FEED or byte == CARRIAGE_RETURN or byte == TAB):
                out[done] = byte
                done += 1
            at += 1
    return done


@numba.njit(int64(Text, int64, int64, int64, Bytes, int64), cache=True, nogil=True)
def write_value(raw: Any, at: Any, end: Any, kind: Any, out: Any, done: Any) -> Any:
    """Write a value as GET_JSON_OBJECT returns it; return the end of the output, or -1 if Python has to write it."""
    if kind == ESCAPED:
        return _write_unescaped(raw, at + 1, end - 1, out, done)
    if kind == CONTAINER:
        return write_container(raw, at, end, out, done)
    if kind == INTEGER or kind == FLOAT:
        return _write_number(raw, at, end, kind, out, done)
    if kind == STRING:
        at += 1
        end -= 1
    for i in range(at, end):
        out[done] = raw[i]
        done += 1
    return done
