"""Writes variant objects and arrays as JSON strings, as Spark does."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint64

from kquery_spark.kernels.variant_loops.layout import (
    DECIMAL4,
    DECIMAL8,
    DECIMAL16,
    FALSE,
    INT8,
    INT64,
    MALFORMED,
    NULL,
    OBJECT,
    PRIMITIVE,
    SHORT_STRING,
    STRING,
    TRUE,
    Bytes,
    Numbers,
    Offsets,
    Raw,
    container,
    id_bytes,
    name_of,
    signed,
    unsigned,
)
from kquery_spark.kernels.variant_loops.paths import decimal_of

_VALUE, _ODD, _MALFORMED, _FULL = 1, 2, 3, 4  # statuses; ODD: it contains a value that Python has to write
_MAX_DEPTH = 500
_NUMBER_BYTES = 48  # the maximum size of a number, a word or a bracket
_NULL_WORD, _TRUE_WORD, _FALSE_WORD = (np.frombuffer(w, np.uint8) for w in (b"null", b"true", b"false"))
_UPPER = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_SHORT = np.zeros(32, np.uint8)  # the escape letter of each control character; 0 if there is none
for _letter, _character in zip(b"btnfr", b"\b\t\n\f\r", strict=True):
    _SHORT[_character] = _letter


@numba.njit(int64(Raw, int64, int64, Bytes, int64), cache=True, nogil=True)
def _write_quoted(raw: Any, at: Any, end: Any, out: Any, done: Any) -> Any:
    """Write a string in quotes; return the end of the output, or -1 if there may be no room for it.

    Each byte becomes at most six, as in \\u001F. The codes below are: 34 ", 92 \\, 117 u, 48 0.
    """
    if done + 6 * (end - at) + 2 > len(out):
        return -1
    out[done] = 34
    done += 1
    for i in range(at, end):
        byte = raw[i]
        if byte == 34 or byte == 92:
            out[done], out[done + 1] = 92, byte
            done += 2
        elif byte >= 32:
            out[done] = byte
            done += 1
        elif _SHORT[byte]:
            out[done], out[done + 1] = 92, _SHORT[byte]
            done += 2
        else:
            out[done], out[done + 1], out[done + 2], out[done + 3] = 92, 117, 48, 48
            out[done + 4], out[done + 5] = _UPPER[byte >> 4], _UPPER[byte & 15]
            done += 6
    out[done] = 34
    return done + 1


@numba.njit(int64(int64, int64, Bytes, int64), cache=True, nogil=True)
def _write_digits(number: Any, scale: Any, out: Any, done: Any) -> Any:
    """Write an integer with ``scale`` digits after the point, without trailing zeros; return the end of the output.

    For example, 1250 with scale 3 becomes 1.25, and -5 with scale 2 becomes -0.05. Digits are written from the right.
    """
    while scale > 0 and number % 10 == 0:
        number, scale = number // 10, scale - 1
    remaining = uint64(number)
    if number < 0:
        out[done] = 45
        done += 1
        remaining = ~remaining + uint64(1)
    count, quotient = int64(1), remaining // uint64(10)
    while quotient > 0:
        count, quotient = count + 1, quotient // uint64(10)
    count = max(count, scale + 1)
    size = count + (1 if scale > 0 else 0)
    for i in range(size - 1, -1, -1):
        if scale > 0 and i == size - 1 - scale:
            out[done + i] = 46
            continue
        out[done + i] = 48 + remaining % uint64(10)
        remaining = remaining // uint64(10)
    return done + size


@numba.njit(int64(Raw, Bytes, int64), cache=True, nogil=True)
def _write_word(word: Any, out: Any, done: Any) -> Any:
    for i in range(len(word)):
        out[done + i] = word[i]
    return done + len(word)


@numba.njit(cache=True, nogil=True)
def _write_scalar(values: Any, at: Any, end: Any, out: Any, done: Any) -> Any:
    """Write a scalar; return a status and the end of the output."""
    basic, info = values[at] & 3, int64(values[at]) >> 2
    if basic == SHORT_STRING or (basic == PRIMITIVE and info == STRING):
        start = at + (1 if basic == SHORT_STRING else 5)
        size = info if basic == SHORT_STRING else unsigned(values, at + 1, 4, end)
        if size < 0 or start + size > end:
            return _MALFORMED, done
        stop = _write_quoted(values, start, start + size, out, done)
        return (_FULL if stop < 0 else _VALUE), stop
    if info == NULL:
        return _VALUE, _write_word(_NULL_WORD, out, done)
    if info == TRUE or info == FALSE:
        return _VALUE, _write_word(_TRUE_WORD if info == TRUE else _FALSE_WORD, out, done)
    if info >= INT8 and info <= INT64:
        width = int64(1) << (info - INT8)
        if at + 1 + width > end:
            return _MALFORMED, done
        return _VALUE, _write_digits(signed(values, at + 1, width), int64(0), out, done)
    if info == DECIMAL4 or info == DECIMAL8 or info == DECIMAL16:
        is_sound, scale, low, high = decimal_of(values, at, end, info)
        if not is_sound:
            return _MALFORMED, done
        if high != low >> 63:
            return _ODD, done
        return _VALUE, _write_digits(low, scale, out, done)
    return _ODD, done


@numba.njit(cache=True, nogil=True)
def _write_value(
    values: Any, at: Any, end: Any, metas: Any, meta: Any, meta_end: Any, out: Any, done: Any, stack: Any
) -> Any:
    """Write a value; return a status and the end of the output.

    stack: the open containers, one row each: the bytes per field id (0 for an array), the number of values, the next value,
    the bytes per offset, the start of the offsets, and the start of the values.
    """
    depth = 0
    while True:
        if at >= end:
            return _MALFORMED, done
        if done + _NUMBER_BYTES > len(out):
            return _FULL, done
        basic = values[at] & 3
        if basic == PRIMITIVE or basic == SHORT_STRING:
            status, done = _write_scalar(values, at, end, out, done)
            if status != _VALUE:
                return status, done
        else:
            size, offset_bytes, offsets, start = container(values, at, end)
            if size < 0:
                return _MALFORMED, done
            if depth == _MAX_DEPTH:
                return _ODD, done
            width = id_bytes(values[at]) if basic == OBJECT else int64(0)
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = width, size, 0
            stack[depth, 3], stack[depth, 4], stack[depth, 5] = offset_bytes, offsets, start
            out[done] = 123 if basic == OBJECT else 91
            done, depth = done + 1, depth + 1
        # after a value or an opening bracket: close finished containers and go to the next value (44 is a comma, 58 a colon)
        while True:
            if depth == 0:
                return _VALUE, done
            if done + _NUMBER_BYTES > len(out):
                return _FULL, done
            width, size, index = stack[depth - 1, 0], stack[depth - 1, 1], stack[depth - 1, 2]
            offset_bytes, offsets, start = stack[depth - 1, 3], stack[depth - 1, 4], stack[depth - 1, 5]
            if index < size:
                break
            out[done] = 125 if width else 93
            done, depth = done + 1, depth - 1
        if index:
            out[done] = 44
            done += 1
        if width:
            number = unsigned(values, offsets - (size - index) * width, width, end)
            first, last = name_of(metas, meta, meta_end, number)
            if first < 0:
                return _MALFORMED, done
            done = _write_quoted(metas, first, last, out, done)
            if done < 0 or done >= len(out):
                return _FULL, done
            out[done] = 58
            done += 1
        offset = unsigned(values, offsets + index * offset_bytes, offset_bytes, end)
        if offset == MALFORMED:
            return _MALFORMED, done
        at = start + offset
        stack[depth - 1, 2] = index + 1


@numba.njit(
    int64(Raw, Offsets, Offsets, Raw, Offsets, Offsets, Bytes, Numbers, Bytes), cache=True, nogil=True
)
def variant_strings(
    values: Any,
    starts: Any,
    ends: Any,
    metas: Any,
    meta_starts: Any,
    meta_ends: Any,
    out: Any,
    bounds: Any,
    statuses: Any,
) -> Any:
    """Write each value as JSON; return the end of the last one, or -1 if ``out`` has no room for all values."""
    stack = np.empty((_MAX_DEPTH, 6), np.int64)
    done = int64(0)
    for row in range(len(starts)):
        bounds[row] = done
        status, stop = _write_value(
            values, starts[row], ends[row], metas, meta_starts[row], meta_ends[row], out, done, stack
        )
        if status == _FULL:
            return -1
        statuses[row] = status
        if status == _VALUE:
            done = stop
    bounds[len(starts)] = done
    return done
