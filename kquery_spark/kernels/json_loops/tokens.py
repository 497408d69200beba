"""Finds the end of JSON tokens (strings, numbers, words), and decodes escapes.

Functions that return two facts pack them into one number, twice the position plus a flag, which is faster than a tuple.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64

from kquery_spark.kernels.json_bytes import (
    BACKSLASH,
    CARRIAGE_RETURN,
    LINE_FEED,
    LOWER_E,
    LOWER_U,
    MINUS,
    NINE,
    PLUS,
    POINT,
    QUOTE,
    SPACE,
    TAB,
    UPPER_E,
    ZERO,
)

# Kinds of values. ESCAPED: a string with escapes.
STRING, ESCAPED, INTEGER, FLOAT, WORD, CONTAINER = range(6)
_TRUE = np.frombuffer(b"true", np.uint8)
_FALSE = np.frombuffer(b"false", np.uint8)
_NULL_WORD = np.frombuffer(b"null", np.uint8)
HEX = np.full(256, 255, np.uint8)  # the value of each hexadecimal digit; 255 for other bytes
for _digit in range(16):
    HEX[ord("0123456789abcdef"[_digit])] = HEX[ord("0123456789ABCDEF"[_digit])] = _digit
SIMPLE = np.zeros(256, np.uint8)  # the character for each letter after a backslash; 0 if it is not an escape
for _letter, _character in zip(b"btnfr\"/\\'", b"\b\t\n\f\r\"/\\'", strict=True):
    SIMPLE[_letter] = _character

Text = numba.types.Array(numba.uint8, 1, "C", readonly=True)


@numba.njit(inline="always")
def blank_end(raw: Any, at: Any, end: Any) -> Any:
    """Return the position of the first byte from ``at`` on that is not white space."""
    while at < end and (
        raw[at] == SPACE or raw[at] == LINE_FEED or raw[at] == CARRIAGE_RETURN or raw[at] == TAB
    ):
        at += 1
    return at


@numba.njit(int64(Text, int64, int64), cache=True, nogil=True)
def string_end(raw: Any, at: Any, end: Any) -> Any:
    """Return twice the position of the closing quote, plus 1 if the string has escapes; -1 if it is malformed."""
    escaped = 0
    while at < end:
        byte = raw[at]
        if byte == QUOTE:
            return 2 * at + escaped
        if byte == BACKSLASH:
            escaped = 1
            at += 1
            if at >= end:
                return -1
            if raw[at] == LOWER_U:
                if at + 4 >= end:
                    return -1
                for i in range(1, 5):
                    if HEX[raw[at + i]] == 255:
                        return -1
                at += 4
            elif SIMPLE[raw[at]] == 0:
                return -1
        at += 1
    return -1


@numba.njit(int64(Text, int64, int64), cache=True, nogil=True)
def code_unit(raw: Any, at: Any, end: Any) -> Any:
    """Return the value of four hexadecimal digits from ``at`` on; -1 if there are fewer."""
    if at + 4 > end:
        return -1
    code = int64(0)
    for i in range(4):
        digit = HEX[raw[at + i]]
        if digit == 255:
            return -1
        code = (code << 4) | digit
    return code


@numba.njit(inline="always")
def is_digit(byte: Any) -> Any:
    """Return True if a byte is a decimal digit."""
    return byte >= ZERO and byte <= NINE


@numba.njit(int64(Text, int64, int64), cache=True, nogil=True)
def number_end(raw: Any, at: Any, end: Any) -> Any:
    """Return twice the end of a number, plus 1 if it has a point or an exponent; -1 if it is malformed."""
    if raw[at] == MINUS:
        at += 1
    if at >= end or not is_digit(raw[at]):
        return -1
    if raw[at] == ZERO:
        at += 1
        if at < end and is_digit(raw[at]):
            return -1
    while at < end and is_digit(raw[at]):
        at += 1
    fraction = 0
    if at < end and raw[at] == POINT:
        fraction = 1
        at += 1
        if at >= end or not is_digit(raw[at]):
            return -1
        while at < end and is_digit(raw[at]):
            at += 1
    if at < end and (raw[at] == LOWER_E or raw[at] == UPPER_E):
        fraction = 1
        at += 1
        if at < end and (raw[at] == PLUS or raw[at] == MINUS):
            at += 1
        if at >= end or not is_digit(raw[at]):
            return -1
        while at < end and is_digit(raw[at]):
            at += 1
    return 2 * at + fraction


@numba.njit(inline="always")
def _begins(raw: Any, at: Any, end: Any, word: Any) -> Any:
    if at + len(word) > end:
        return False
    for i in range(len(word)):  # noqa: SIM110  numba has no generators here
        if raw[at + i] != word[i]:
            return False
    return True


@numba.njit(int64(Text, int64, int64), cache=True, nogil=True)
def word_end(raw: Any, at: Any, end: Any) -> Any:
    """Return the end of true, false or null; -1 for anything else."""
    if _begins(raw, at, end, _TRUE) or _begins(raw, at, end, _NULL_WORD):
        return at + 4
    return at + 5 if _begins(raw, at, end, _FALSE) else -1
