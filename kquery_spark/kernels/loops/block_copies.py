"""Copies the literals of Snappy and LZ4 blocks, and repeated bytes of the output.

Blocks of 64-bit integers consist of elements with about 4 raw bytes, so most of the time would go into calls that copy a few
bytes. Therefore, elements of up to 16 raw bytes are copied as two words. Exceptions are literals in the last bytes of the
input, and copies from less than 8 bytes back (``copy_from_output``). The next element overwrites the excess bytes, and
``PADDING`` is the room for those of the last element.

The callers check that the source exists and that the element fits into the output.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import uintp

from kquery_spark.kernels.loops.memory import copy_bytes, load64, store64

PADDING = 16
"""The number of bytes that the output must have after the raw bytes of a block."""

_WORD, _TWO_WORDS = uintp(8), uintp(16)


@numba.njit(inline="always")
def copy_words(out: Any, to: Any, data: Any, at: Any) -> None:
    """Copy 16 bytes. If ``out`` and ``data`` are one array, ``at`` must be at least 8 bytes before ``to``."""
    store64(out, to, load64(data, at))
    store64(out, to + _WORD, load64(data, at + _WORD))


@numba.njit(inline="always")
def copy_literal(out: Any, to: Any, data: Any, at: Any, size: Any) -> None:
    """Copy ``size`` bytes of the input, and up to 16 more bytes."""
    if size <= _TWO_WORDS and at + _TWO_WORDS <= uintp(len(data)):
        copy_words(out, to, data, at)
    else:
        copy_bytes(out, to, data, at, size)


@numba.njit
def copy_from_output(out: Any, to: Any, offset: Any, size: Any) -> None:
    """Copy ``size`` bytes from ``offset`` bytes before ``to``, and up to 15 more bytes.

    A word would overlap its own source if ``offset`` is below 8. The bytes repeat after ``offset`` bytes, hence also after
    each multiple of it. So the first bytes are copied one by one, and then words from a multiple that is at least 8.
    """
    end, distance = to + size, offset
    if offset < _WORD:
        while distance < _WORD:
            distance += offset
        for i in range(min(size, distance)):
            out[to + uintp(i)] = out[to - offset + uintp(i)]
        to += distance
    elif size <= _TWO_WORDS:
        copy_words(out, to, out, to - offset)
        return
    while to < end:
        store64(out, to, load64(out, to - distance))
        to += _WORD
