"""Evaluates JSON paths with wildcards on a string column. ``kernels/json_wildcards.py`` explains the rules."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64

from kquery_spark.kernels.json_bytes import (
    CLOSE_ARRAY,
    CLOSE_OBJECT,
    COMMA,
    LOWER_F,
    LOWER_N,
    LOWER_T,
    MINUS,
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    SPACE,
)
from kquery_spark.kernels.json_loops.scan import NULL, ODD, VALUE, scan_text
from kquery_spark.kernels.json_loops.tokens import (
    FLOAT,
    INTEGER,
    WORD,
    Text,
    blank_end,
    is_digit,
    number_end,
    string_end,
    word_end,
)
from kquery_spark.kernels.json_loops.write import Bytes, write_container, write_value

_Offsets = numba.types.Array(numba.int64, 1, "C", readonly=True)
_Numbers, _Flags = numba.int64[::1], numba.uint8[::1]
_NAME, _EACH = -1, -2  # steps that are not indexes: by name, and each element (wildcard)
_RAW, _QUOTED, _FLATTENED = 0, 1, 2  # Spark's write styles: before a wildcard, after one, after two


@numba.njit(int64(Text, int64, int64), cache=True, nogil=True)
def value_end(raw: Any, at: Any, end: Any) -> Any:
    """Return the end of a value, which must be well-formed."""
    depth = int64(0)
    while at < end:
        byte = raw[at]
        if byte == QUOTE:
            at = (string_end(raw, at + 1, end) >> 1) + 1
        elif byte == OPEN_OBJECT or byte == OPEN_ARRAY:
            depth += 1
            at += 1
        elif byte == CLOSE_OBJECT or byte == CLOSE_ARRAY:
            depth -= 1
            at += 1
        elif byte == MINUS or is_digit(byte):
            at = number_end(raw, at, end) >> 1
        elif depth == 0 or byte == LOWER_T or byte == LOWER_F or byte == LOWER_N:
            at = word_end(raw, at, end)
        else:
            at += 1
        if depth == 0:
            break
    return at


@numba.njit(int64(Text, int64, int64, Bytes, int64), cache=True, nogil=True)
def _write_whole(raw: Any, at: Any, end: Any, out: Any, done: Any) -> Any:
    """Write a value as Jackson copies it; return the end of the output, or -1 if Python has to write it."""
    byte = raw[at]
    if byte == QUOTE or byte == OPEN_OBJECT or byte == OPEN_ARRAY:
        return write_container(raw, at, end, out, done)
    kind = int64(WORD)
    if byte == MINUS or is_digit(byte):
        kind = int64(FLOAT if number_end(raw, at, end) & 1 else INTEGER)
    return write_value(raw, at, end, kind, out, done)


@numba.njit(int64(Text, int64, int64, Text, int64, int64), cache=True, nogil=True)
def _is_name(raw: Any, at: Any, last: Any, names: Any, low: Any, high: Any) -> Any:
    """Return 1 if the name from ``at`` to ``last`` is the step's name, from ``low`` to ``high`` in ``names``; 0 if not."""
    if last - at != high - low:
        return 0
    for i in range(high - low):
        if raw[at + i] != names[low + i]:
            return 0
    return 1


@numba.njit(inline="always")
def _separated(out: Any, done: Any, first: Any, separator: Any) -> Any:
    """Write the separator, unless the next value is the first one; return the end of the output."""
    if done > first:
        out[done] = separator
        done += 1
    return done


@numba.njit(inline="always")
def _next_item(raw: Any, at: Any, end: Any) -> Any:
    """Return the start of the next member or element after the value that ends at ``at``, or the closing bracket."""
    at = blank_end(raw, at, end)
    if raw[at] == COMMA:
        at = blank_end(raw, at + 1, end)
    return at


@numba.njit(
    int64(Text, int64, int64, Text, _Offsets, _Offsets, int64, int64, Bytes, int64, int64, int64),
    cache=True,
    nogil=True,
)
def _write(
    raw: Any,
    at: Any,
    end: Any,
    names: Any,
    bounds: Any,
    indexes: Any,
    step: Any,
    style: Any,
    out: Any,
    done: Any,
    first: Any,
    separator: Any,
) -> Any:
    """Write the matches of the steps from ``step`` on in the value from ``at`` to ``end``.

    first: the output position of the first value of the current array; a ``separator`` precedes all others. Returns twice
    the end of the output, plus 1 if anything matched, since numba is faster with one number than with a tuple; -1 for a
    document that Python has to parse.
    """
    byte = raw[at]
    index = int64(indexes[step]) if step < len(indexes) else int64(_NAME)
    if step == len(indexes) and not (byte == OPEN_ARRAY and style == _FLATTENED):
        done = _separated(out, done, first, separator)
        done = _write_whole(raw, at, end, out, done)
        return int64(-1) if done < 0 else 2 * done + 1
    if byte == OPEN_OBJECT and index == _NAME and step < len(indexes):
        at = blank_end(raw, at + 1, end)
        while raw[at] != CLOSE_OBJECT:
            packed = string_end(raw, at + 1, end)
            if packed & 1:
                return int64(-1)
            is_same = _is_name(raw, at + 1, packed >> 1, names, bounds[step], bounds[step + 1])
            at = blank_end(raw, blank_end(raw, (packed >> 1) + 1, end) + 1, end)
            last = value_end(raw, at, end)
            if is_same and raw[at] != LOWER_N:
                packed = _write(
                    raw, at, last, names, bounds, indexes, step + 1, style, out, done, first, separator
                )
                if packed < 0 or packed & 1:
                    return packed
                done = packed >> 1
            at = _next_item(raw, last, end)
        return 2 * done
    if byte != OPEN_ARRAY or (index == _NAME and step < len(indexes)):
        return 2 * done
    # The value is an array. The path selects one element, each element, or each element flattened at the end of the path.
    is_followed = step + 1 < len(indexes) and indexes[step + 1] == _EACH
    inner_step, inner_style, begin = step + 1, style, done
    is_array = is_buffered = False
    if step == len(indexes):
        inner_step = step
    elif index == _EACH:
        is_array = True
        is_buffered = not is_followed and style != _QUOTED
        if is_followed:
            inner_step, inner_style = step + 2, int64(_FLATTENED)
        elif style != _FLATTENED:
            inner_style = int64(_QUOTED)
        done = _separated(out, done, first, separator)
        out[done] = OPEN_ARRAY
        done += 1
        first, separator = done, int64(COMMA)
    elif is_followed:
        inner_style = int64(_QUOTED)
    count = position = int64(0)
    at = blank_end(raw, at + 1, end)
    while raw[at] != CLOSE_ARRAY:
        last = value_end(raw, at, end)
        if index < 0 or position == index:
            packed = _write(
                raw,
                at,
                last,
                names,
                bounds,
                indexes,
                inner_step,
                inner_style,
                out,
                done,
                first,
                separator,
            )
            if packed < 0:
                return packed
            done = packed >> 1
            count += packed & 1
        position += 1
        at = _next_item(raw, last, end)
    if is_buffered and count == 0:
        return 2 * begin
    if is_buffered and count == 1:  # remove the opening bracket
        for i in range(first, done):
            out[i - 1] = out[i]
        return 2 * (done - 1) + 1
    if is_array:
        out[done] = CLOSE_ARRAY
        done += 1
    return 2 * done + (1 if count else 0)


@numba.njit(
    int64(Text, _Offsets, Text, _Offsets, _Offsets, _Numbers, Bytes, _Flags),
    cache=True,
    nogil=True,
)
def json_matches(
    raw: Any, offsets: Any, names: Any, bounds: Any, indexes: Any, ends: Any, out: Any, status: Any
) -> Any:
    """Write the matches of a path with wildcards in each document, one after the other; return the number of bytes written.

    The parameters are those of ``json_values``, but a wildcard is -2 in ``indexes``, and ``out`` needs twice as many bytes
    as the strings have.
    """
    done = int64(0)
    no_path, no_keys = np.zeros(0, np.int64), np.zeros(0, np.int64)
    positions = np.zeros(1, np.int64)
    for row in range(len(offsets) - 1):
        ends[row] = done
        state, start, stop, _, _, _ = scan_text(
            raw, offsets[row], offsets[row + 1], names, bounds, no_path, False, positions, no_keys
        )
        if state == VALUE:
            packed = _write(
                raw,
                start,
                stop,
                names,
                bounds,
                indexes,
                int64(0),
                int64(_RAW),
                out,
                done,
                done,
                int64(SPACE),
            )
            state = int64(ODD if packed < 0 else VALUE if packed & 1 else NULL)
            if state == VALUE:
                done = packed >> 1
        status[row] = state
    ends[len(offsets) - 1] = done
    return done
