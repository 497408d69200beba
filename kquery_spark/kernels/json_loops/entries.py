"""Finds the names and values of JSON objects in a string column."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64

from kquery_spark.kernels.json_bytes import CLOSE_OBJECT, COMMA, OPEN_OBJECT
from kquery_spark.kernels.json_loops.matches import value_end
from kquery_spark.kernels.json_loops.scan import NULL, ODD, VALUE, scan_text
from kquery_spark.kernels.json_loops.tokens import Text, blank_end, string_end

_Offsets = numba.types.Array(numba.int64, 1, "C", readonly=True)
_Numbers, _Flags = numba.int64[::1], numba.uint8[::1]


@numba.njit(int64(Text, _Offsets, _Numbers, _Numbers, _Flags), cache=True, nogil=True)
def json_entries(raw: Any, offsets: Any, ends: Any, bounds: Any, status: Any) -> Any:
    """Write the positions of the entries of each document that is an object; return the number of all entries.

    ends: the number of the first entry of each document, and the total. bounds: needs as many items as the strings have
    bytes; each entry takes four: the start and end of its name, and the start and end of its value.
    """
    no_path, no_keys = np.zeros(0, np.int64), np.zeros(0, np.int64)
    positions, name_bounds = np.zeros(1, np.int64), np.zeros(2, np.int64)
    names = np.zeros(0, np.uint8)
    count = int64(0)
    for row in range(len(offsets) - 1):
        ends[row] = count
        state, at, end, _, root, _ = scan_text(
            raw, offsets[row], offsets[row + 1], names, name_bounds, no_path, False, positions, no_keys
        )
        status[row] = VALUE
        if state != VALUE or root != OPEN_OBJECT:
            status[row] = NULL if state == VALUE else ODD
            continue
        # ``scan_text`` has validated the document, so this loop need not check the syntax again.
        at = blank_end(raw, at + 1, end)
        while raw[at] != CLOSE_OBJECT:
            packed = string_end(raw, at + 1, end)
            if packed & 1:
                status[row] = ODD
                count = ends[row]
                break
            bounds[4 * count] = at + 1
            bounds[4 * count + 1] = packed >> 1
            at = blank_end(raw, blank_end(raw, (packed >> 1) + 1, end) + 1, end)
            bounds[4 * count + 2] = at
            at = value_end(raw, at, end)
            bounds[4 * count + 3] = at
            count += 1
            at = blank_end(raw, at, end)
            if raw[at] == COMMA:
                at = blank_end(raw, at + 1, end)
    ends[len(offsets) - 1] = count
    return count
