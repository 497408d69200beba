"""JSON texts: the values at a path that goes on from each element of an array."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64

from kquery_spark.kernels.json_loops.scan import NULL, ODD, VALUE, scan_text
from kquery_spark.kernels.json_loops.tokens import (
    CONTAINER,
    ESCAPED,
    STRING,
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
def _value_end(raw: Any, at: Any, end: Any) -> Any:
    """Where a value ends that is known to be well-formed."""
    depth = int64(0)
    while at < end:
        byte = raw[at]
        if byte == 34:
            at = (string_end(raw, at + 1, end) >> 1) + 1
        elif byte == 123 or byte == 91:
            depth += 1
            at += 1
        elif byte == 125 or byte == 93:
            depth -= 1
            at += 1
        elif byte == 45 or is_digit(byte):
            at = number_end(raw, at, end) >> 1
        elif depth == 0 or byte == 116 or byte == 102 or byte == 110:
            at = word_end(raw, at, end)
        else:
            at += 1
        if depth == 0:
            break
    return at


@numba.njit(cache=True, nogil=True)
def _write_matches(
    raw: Any, at: Any, end: Any, names: Any, bounds: Any, indexes: Any, positions: Any, out: Any, done: Any
) -> Any:
    """Write what is behind the elements of an array, with commas between: its end, or -1, and how many values it is."""
    no_keys = np.zeros(0, np.int64)
    count = int64(0)
    at = blank_end(raw, at + 1, end)
    while raw[at] != 93:
        last = _value_end(raw, at, end)
        state, start, stop, kind, _, _ = scan_text(
            raw, at, last, names, bounds, indexes, False, positions, no_keys
        )
        if state == ODD:
            return int64(-1), count
        if state == VALUE and stop > 0:
            if count:
                out[done] = 44
                done += 1
            if kind == STRING or kind == ESCAPED or kind == CONTAINER:  # noqa: SIM109  numba compares faster
                done = write_container(raw, start, stop, out, done)
            else:
                done = write_value(raw, start, stop, kind, out, done)
            if done < 0:
                return int64(-1), count
            count += 1
        at = blank_end(raw, last, end)
        if raw[at] == 44:
            at = blank_end(raw, at + 1, end)
    return done, count


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
    each: Any,
    ends: Any,
    out: Any,
    status: Any,
) -> Any:
    """Write the values at a path through each element of an array; the number of bytes written.

    As ``json_values``; each: the step of the path that is the one to each element.
    """
    done = int64(0)
    positions = np.zeros(len(indexes) + 1, np.int64)
    no_keys = np.zeros(0, np.int64)
    for row in range(len(offsets) - 1):
        ends[row] = done
        low, high = offsets[row], offsets[row + 1]
        state, start, stop, _, _, _ = scan_text(
            raw, low, high, names, bounds, indexes[:each], False, positions, no_keys
        )
        if state == VALUE and stop == 0:
            state = NULL
        if state == VALUE:
            count = int64(0)
            last = done
            if raw[start] == 91:
                last, count = _write_matches(
                    raw,
                    start,
                    stop,
                    names,
                    bounds[each + 1 :],
                    indexes[each + 1 :],
                    positions,
                    out,
                    done + 1,
                )
            if last < 0:
                state = ODD
            elif count > 1:
                out[done] = 91
                out[last] = 93
                done = last + 1
            elif count == 1:
                for i in range(done + 1, last):
                    out[i - 1] = out[i]
                done = last - 1
            else:  # of another field of the name there may be something
                _, again, _, _, _, _ = scan_text(
                    raw, low, high, names, bounds, indexes[:each], True, positions, no_keys
                )
                state = NULL if again == start else ODD
        status[row] = state
    ends[len(offsets) - 1] = done
    return done
