"""JSON strings: the value at a path, the number of elements of an array, the names of an object.

The strings are read as Jackson reads them for Spark's JSON functions. A text that needs more than these loops know
(single quotes, escaped names on the way, surrogates, numbers that Java prints in other digits) is ODD: Python reads it.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import boolean, int32, int64

from kquery_spark.kernels.json_loops.scan import NULL, ODD, VALUE, scan_text
from kquery_spark.kernels.json_loops.tokens import Text
from kquery_spark.kernels.json_loops.write import Bytes, write_value

_Offsets = numba.types.Array(numba.int64, 1, "C", readonly=True)
_Numbers, _Flags = numba.int64[::1], numba.uint8[::1]


@numba.njit(
    int64(Text, _Offsets, Text, _Offsets, _Offsets, boolean, _Numbers, Bytes, _Flags),
    cache=True,
    nogil=True,
)
def json_values(
    raw: Any,
    offsets: Any,
    names: Any,
    bounds: Any,
    indexes: Any,
    takes_last: Any,
    ends: Any,
    out: Any,
    status: Any,
) -> Any:
    """Write the value at a path of each text, one after the other; the number of bytes written.

    takes_last: of equal names the last counts. ends: where each value begins and the last one ends. out: as many bytes
    as the strings have. status: NULL, VALUE or ODD.
    """
    done = int64(0)
    positions = np.zeros(len(indexes) + 1, np.int64)
    no_keys = np.zeros(0, np.int64)
    for row in range(len(offsets) - 1):
        ends[row] = done
        state, start, stop, kind, _, _ = scan_text(
            raw, offsets[row], offsets[row + 1], names, bounds, indexes, takes_last, positions, no_keys
        )
        if state == VALUE and stop == 0:
            state = NULL
        if state == VALUE:
            last = write_value(raw, start, stop, kind, out, done)
            if last < 0:
                state = ODD
            else:
                done = last
        status[row] = state
    ends[len(offsets) - 1] = done
    return done


@numba.njit(int32(Text, _Offsets, _Numbers, _Flags), cache=True, nogil=True)
def json_lengths(raw: Any, offsets: Any, lengths: Any, status: Any) -> Any:
    """The number of elements of each text that is an array."""
    no_path = np.full(1, -1, np.int64)
    positions, bounds = np.zeros(2, np.int64), np.zeros(2, np.int64)
    names, no_keys = np.zeros(0, np.uint8), np.zeros(0, np.int64)
    for row in range(len(offsets) - 1):
        state, _, _, _, root, count = scan_text(
            raw, offsets[row], offsets[row + 1], names, bounds, no_path, False, positions, no_keys
        )
        lengths[row] = count
        status[row] = NULL if state == VALUE and root != 91 else state
    return 0


@numba.njit(int64(Text, _Offsets, _Numbers, _Numbers, _Flags), cache=True, nogil=True)
def json_names(raw: Any, offsets: Any, ends: Any, name_bounds: Any, status: Any) -> Any:
    """Write where the names of each text that is an object begin and end; the number of all names.

    ends: the first name of each text among all names, and the end of the last ones. name_bounds: two items for each byte
    of the strings.
    """
    no_path = np.full(1, 0, np.int64)
    positions, bounds = np.zeros(2, np.int64), np.zeros(2, np.int64)
    names = np.zeros(0, np.uint8)
    done = int64(0)
    for row in range(len(offsets) - 1):
        ends[row] = done
        state, _, _, _, root, count = scan_text(
            raw,
            offsets[row],
            offsets[row + 1],
            names,
            bounds,
            no_path,
            False,
            positions,
            name_bounds[2 * done :],
        )
        if state == VALUE and root == 123:
            done += count
        status[row] = NULL if state == VALUE and root != 123 else state
    ends[len(offsets) - 1] = done
    return done
