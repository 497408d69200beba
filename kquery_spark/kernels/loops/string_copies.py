"""Copies strings into an output that grows. Short strings are copied as words, without a call of memcpy."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64

from kquery_spark.kernels.loops.memory import copy_bytes, load64, store64

COPY_SLACK = 16
"""The number of bytes that ``copy_string`` may write after a string."""
_SHORT = 64  # up to this number of bytes, a loop copies a string faster than a call of memcpy


@numba.njit(inline="always")
def copy_string(out: Any, to: Any, data: Any, at: Any, size: Any) -> None:
    """Copy a string. Copies whole blocks of 16 bytes, so it may write up to ``COPY_SLACK`` bytes after the string.

    ``out`` and ``data`` may be one array if the string ends at or before ``to``.
    """
    if size <= _SHORT and at + size + COPY_SLACK <= len(data):
        i = int64(0)
        while i < size:
            store64(out, to + i, load64(data, at + i))
            store64(out, to + i + 8, load64(data, at + i + 8))
            i += 16
    else:
        copy_bytes(out, to, data, at, size)


@numba.njit
def with_more_room(out: Any, used: Any, more: Any, limit: Any) -> Any:
    """Copy the first ``used`` bytes to an array that has room for ``more`` bytes and is twice as large, up to ``limit``."""
    larger = np.empty(max(min(2 * len(out), limit), used + more), np.uint8)
    copy_bytes(larger, int64(0), out, int64(0), used)
    return larger
