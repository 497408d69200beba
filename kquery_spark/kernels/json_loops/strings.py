"""Finds the value at a path, the number of array elements, and the names of an object in a column of JSON strings.

The loops follow Jackson as Spark's JSON functions use it. A document that needs more than they support (single quotes,
escaped names on the path, surrogates, numbers that Java prints with other digits) is ODD, and Python parses it.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import boolean, int32, int64

from kquery_spark.kernels.json_bytes import OPEN_ARRAY, OPEN_OBJECT
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
    """Write the value at a path of each document, one after the other; return the number of bytes written.

    names, bounds, indexes, takes_last: as for ``scan_text``. ends: the start of each value in ``out``, and the end of the
    last one. out: needs as many bytes as the strings have. status: NULL, VALUE or ODD for each document.
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
    """Write the number of elements of each document that is an array."""
    no_path = np.full(1, -1, np.int64)
    positions, bounds = np.zeros(2, np.int64), np.zeros(2, np.int64)
    names, no_keys = np.zeros(0, np.uint8), np.zeros(0, np.int64)
    for row in range(len(offsets) - 1):
        state, _, _, _, root, count = scan_text(
            raw, offsets[row], offsets[row + 1], names, bounds, no_path, False, positions, no_keys
        )
        lengths[row] = count
        status[row] = NULL if state == VALUE and root != OPEN_ARRAY else state
    return 0


@numba.njit(int64(Text, _Offsets, _Numbers, _Numbers, _Flags), cache=True, nogil=True)
def json_names(raw: Any, offsets: Any, ends: Any, name_bounds: Any, status: Any) -> Any:
    """Write the start and end of the names of each document that is an object; return the number of all names.

    ends: the number of the first name of each document, and the total. name_bounds: needs two items for each byte of the
    strings.
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
        if state == VALUE and root == OPEN_OBJECT:
            done += count
        status[row] = NULL if state == VALUE and root != OPEN_OBJECT else state
    ends[len(offsets) - 1] = done
    return done
