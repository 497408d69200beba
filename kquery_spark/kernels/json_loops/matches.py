"""Evaluates JSON paths with a wildcard on a string column. ``kernels/json_wildcards.py`` explains the rules."""

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


@numba.njit(cache=True, nogil=True)
def _write_elements(
    raw: Any,
    at: Any,
    end: Any,
    names: Any,
    bounds: Any,
    indexes: Any,
    positions: Any,
    no_keys: Any,
    out: Any,
    done: Any,
) -> Any:
    """Write a JSON array of the values at a path in the elements of the array that begins at ``at``.

    Returns a status (NULL if no element has a value), the end of the output, and the number of values. The output is only
    valid if the status is VALUE.
    """
    count = int64(0)
    out[done] = OPEN_ARRAY
    done += 1
    at = blank_end(raw, at + 1, end)
    while raw[at] != CLOSE_ARRAY:
        last = value_end(raw, at, end)
        status, start, stop, _, _, _ = scan_text(
            raw, at, last, names, bounds, indexes, False, positions, no_keys
        )
        if status == VALUE and stop > 0:
            if count:
                out[done] = COMMA
                done += 1
            done = _write_whole(raw, start, stop, out, done)
            count += 1
        if status == ODD or done < 0:
            return int64(ODD), int64(0), count
        at = blank_end(raw, last, end)
        if raw[at] == COMMA:
            at = blank_end(raw, at + 1, end)
    out[done] = CLOSE_ARRAY
    return int64(VALUE if count else NULL), done + 1, count


@numba.njit(
    int64(Text, _Offsets, Text, _Offsets, _Offsets, int64, _Numbers, Bytes, _Flags),
    cache=True,
    nogil=True,
)
def json_matches(
    raw: Any,
    offsets: Any,
    names: Any,
    bounds: Any,
    indexes: Any,
    wildcard: Any,
    ends: Any,
    out: Any,
    status: Any,
) -> Any:
    """Write the matches of a path with a wildcard in each document, one after the other; return the number of bytes.

    The parameters are those of ``json_values``. wildcard: the 0-based index of the wildcard among the steps. out: needs
    twice as many bytes as the strings have.
    """
    done = int64(0)
    no_keys, positions = np.zeros(0, np.int64), np.zeros(len(indexes) + 1, np.int64)
    before, after, after_bounds = indexes[:wildcard], indexes[wildcard + 1 :], bounds[wildcard + 1 :]
    keeps_brackets = wildcard > 0 and indexes[wildcard - 1] >= 0
    for row in range(len(offsets) - 1):
        ends[row] = done
        at, end = offsets[row], offsets[row + 1]
        state, start, stop, _, _, _ = scan_text(
            raw, at, end, names, bounds, before, False, positions, no_keys
        )
        if state != VALUE or stop == 0:
            status[row] = ODD if state == ODD else NULL
            continue
        last, count, state = done, int64(0), int64(NULL)
        if raw[start] == OPEN_ARRAY:
            state, last, count = _write_elements(
                raw, start, stop, names, after_bounds, after, positions, no_keys, out, done
            )
        if state == NULL:
            # Spark continues with a later field of the same name. If there is one, Python evaluates the document.
            _, later, _, _, _, _ = scan_text(raw, at, end, names, bounds, before, True, positions, no_keys)
            state = int64(ODD if later != start else NULL)
        status[row] = state
        if state != VALUE:
            continue
        if count == 1 and not keeps_brackets:
            for i in range(done + 1, last - 1):
                out[i - 1] = out[i]
            last -= 2
        done = last
    ends[len(offsets) - 1] = done
    return done
