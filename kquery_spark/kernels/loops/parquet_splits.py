"""Decodes BYTE_STREAM_SPLIT, which stores the first bytes of all values, then the second bytes of all values, and so on.

For the 32-bit integers 1 and 0x0203, a page has four streams:

    01 03   00 02   00 00   00 00

A page of ``count`` values of ``width`` bytes has ``count * width`` bytes, which the caller checks.

The loops decode four values of four bytes at once, or eight values of eight bytes. They load the next four or eight bytes of
each stream as one row of a square matrix, and transpose the matrix. ``_swap`` exchanges the upper half of one row with the
lower half of another row, then the quarters within the halves, and so on down to single bytes. For the values a, b, c, d,
where a1 is the second byte of a:

    a0 b0 c0 d0         a0 b0 a2 b2         a0 a1 a2 a3
    a1 b1 c1 d1   -->   a1 b1 a3 b3   -->   b0 b1 b2 b3
    a2 b2 c2 d2         c0 d0 c2 d2         c0 c1 c2 c3
    a3 b3 c3 d3         c1 d1 c3 d3         d0 d1 d2 d3
"""

from __future__ import annotations

from typing import Any

import numba
from numba import uint64

from kquery_spark.kernels.loops.memory import load32, load64, store32, store64

_HALVES, _QUARTERS, _BYTES = uint64(0xFFFFFFFF), uint64(0x0000FFFF0000FFFF), uint64(0x00FF00FF00FF00FF)


@numba.njit(inline="always")
def _swap(low: Any, high: Any, shift: Any, mask: Any) -> Any:
    """Exchange the parts of ``low`` that ``mask << shift`` selects with those of ``high`` that ``mask`` selects."""
    changed = ((low >> uint64(shift)) ^ high) & mask
    return low ^ (changed << uint64(shift)), high ^ changed


@numba.njit
def _join_last(data: Any, at: Any, first: Any, count: Any, width: Any, out: Any, to: Any) -> None:
    """Join the values from number ``first`` on byte by byte. They are too few for a matrix."""
    for i in range(first, count):
        for k in range(width):
            out[to + width * i + k] = data[at + k * count + i]


@numba.njit
def _join_words(data: Any, at: Any, count: Any, out: Any, to: Any) -> None:
    """Join values of eight bytes, eight at a time."""
    groups = count >> 3
    for group in range(groups):
        here = at + 8 * group
        a, b = load64(data, here), load64(data, here + count)
        c, d = load64(data, here + 2 * count), load64(data, here + 3 * count)
        e, f = load64(data, here + 4 * count), load64(data, here + 5 * count)
        g, h = load64(data, here + 6 * count), load64(data, here + 7 * count)
        a, e = _swap(a, e, 32, _HALVES)
        b, f = _swap(b, f, 32, _HALVES)
        c, g = _swap(c, g, 32, _HALVES)
        d, h = _swap(d, h, 32, _HALVES)
        a, c = _swap(a, c, 16, _QUARTERS)
        b, d = _swap(b, d, 16, _QUARTERS)
        e, g = _swap(e, g, 16, _QUARTERS)
        f, h = _swap(f, h, 16, _QUARTERS)
        a, b = _swap(a, b, 8, _BYTES)
        c, d = _swap(c, d, 8, _BYTES)
        e, f = _swap(e, f, 8, _BYTES)
        g, h = _swap(g, h, 8, _BYTES)
        there = to + 64 * group
        store64(out, there, a)
        store64(out, there + 8, b)
        store64(out, there + 16, c)
        store64(out, there + 24, d)
        store64(out, there + 32, e)
        store64(out, there + 40, f)
        store64(out, there + 48, g)
        store64(out, there + 56, h)
    _join_last(data, at, groups << 3, count, 8, out, to)


@numba.njit
def join_streams(data: Any, at: Any, count: Any, width: Any, out: Any, to: Any) -> None:
    """Write the ``count`` values of four or eight bytes, whose streams begin at ``at``, to ``out`` from byte ``to`` on."""
    if width == 8:
        _join_words(data, at, count, out, to)
        return
    groups = count >> 2
    for group in range(groups):
        here = at + 4 * group
        a, b = load32(data, here), load32(data, here + count)
        c, d = load32(data, here + 2 * count), load32(data, here + 3 * count)
        a, c = _swap(a, c, 16, _QUARTERS)
        b, d = _swap(b, d, 16, _QUARTERS)
        a, b = _swap(a, b, 8, _BYTES)
        c, d = _swap(c, d, 8, _BYTES)
        there = to + 16 * group
        store32(out, there, a)
        store32(out, there + 4, b)
        store32(out, there + 8, c)
        store32(out, there + 12, d)
    _join_last(data, at, groups << 2, count, 4, out, to)
