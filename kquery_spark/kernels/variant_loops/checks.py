"""Validates objects and arrays at all depths."""

from __future__ import annotations

from typing import Any

import numba
from numba import int64

from kquery_spark.kernels.variant_loops.layout import (
    ARRAY,
    OBJECT,
    container,
    id_bytes,
    name_of,
    unsigned,
    value_size,
)

MAX_DEPTH = 500


@numba.njit(cache=True, nogil=True)
def is_sound(values: Any, at: Any, end: Any, metas: Any, meta: Any, meta_end: Any, stack: Any) -> Any:
    """Return True if Spark can copy a value; a value that is nested deeper than ``MAX_DEPTH`` counts as malformed.

    stack: scratch space, ``MAX_DEPTH`` rows of three numbers: the position of an open container, the number of its values,
    and the next value to visit.
    """
    depth = 0
    while True:
        if at >= end:
            return False
        basic = values[at] & 3
        if basic == OBJECT or basic == ARRAY:
            size, _, _, _ = container(values, at, end)
            if size < 0 or depth == MAX_DEPTH:
                return False
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = at, size, 0
            depth += 1
        else:
            size = value_size(values, at, end)
            if size < 0 or at + size > end:
                return False
        while depth and stack[depth - 1, 1] == stack[depth - 1, 2]:
            depth -= 1
        if not depth:
            return True
        parent, index = stack[depth - 1, 0], stack[depth - 1, 2]
        stack[depth - 1, 2] = index + 1
        size, offset_bytes, offsets, start = container(values, parent, end)
        if values[parent] & 3 == OBJECT:
            width = id_bytes(values[parent])
            number = unsigned(values, offsets - (size - index) * width, width, end)
            first, _ = name_of(metas, meta, meta_end, number)
            if first < 0:
                return False
        offset = unsigned(values, offsets + index * offset_bytes, offset_bytes, end)
        if offset < 0:
            return False
        at = start + int64(offset)
