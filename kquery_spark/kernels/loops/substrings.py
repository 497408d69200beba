"""Searches strings of an Arrow array for literals.

The bytes of all strings are searched at once, in blocks. A block is skipped if four bytes of the literal, its first three
and its last one, occur nowhere in it at the right distances. The loop that compares them has no branches, so it is compiled
to vector instructions, which take about 0.05 ns per byte. In other blocks, each position is examined by itself.

Positions are unsigned (``uintp``), because numba tests each signed index for being negative, which counts from the
end. The offsets must be those of a valid array: they ascend, and the last one is at most ``len(data)``.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import int32, uint8, uintp, void

_BLOCK = 32  # bytes; as many as a vector register has with AVX2
_ZERO, _ONE, _TWO = uintp(0), uintp(1), uintp(2)

_Bytes = numba.types.Array(uint8, 1, "C", readonly=True)
_Offsets = numba.types.Array(int32, 1, "C", readonly=True)
_Flags = uint8[::1]


@numba.njit
def _is_at(data: Any, at: Any, literals: Any, start: Any, size: Any) -> Any:
    """Return whether ``data[at : at + size]`` equals ``literals[start : start + size]``. The caller checks the bounds."""
    equal = _ZERO
    while equal < size and data[at + equal] == literals[start + equal]:
        equal += _ONE
    return equal == size


@numba.njit(void(_Bytes, _Offsets, _Bytes, _Flags), cache=True, nogil=True)
def find_literal(data: Any, offsets: Any, literal: Any, flags: Any) -> None:
    """Set the flag of each string that contains the literal, which is not empty. Other flags do not change.

    A match counts only if it ends in the string in which it begins: "ab" and "cd" are stored as "abcd".
    """
    at, end = uintp(offsets[0]), uintp(offsets[len(offsets) - 1])
    size, row = uintp(len(literal)), _ZERO
    third, second, last = min(_TWO, size - _ONE), min(_ONE, size - _ONE), size - _ONE
    a, b, c, d = literal[_ZERO], literal[second], literal[third], literal[last]
    while at + size <= end:
        if at + uintp(_BLOCK) + last <= end:
            is_candidate = False
            for j in range(_BLOCK):
                k = at + uintp(j)
                is_candidate |= (
                    (data[k] == a) & (data[k + second] == b) & (data[k + third] == c) & (data[k + last] == d)
                )
            if not is_candidate:
                at += uintp(_BLOCK)
                continue
        stop = min(at + uintp(_BLOCK), end - last)
        while at < stop:
            if data[at] == a and data[at + last] == d and _is_at(data, at, literal, _ZERO, size):
                while uintp(offsets[row + _ONE]) <= at:
                    row += _ONE
                next_string = uintp(offsets[row + _ONE])
                if at + size <= next_string:
                    flags[row] = uint8(1)
                    at = next_string
                    continue
            at += _ONE


@numba.njit(
    void(_Bytes, _Offsets, _Bytes, _Offsets, numba.boolean, numba.boolean, _Flags), cache=True, nogil=True
)
def check_order(
    data: Any, offsets: Any, literals: Any, bounds: Any, is_prefix: Any, is_suffix: Any, flags: Any
) -> None:
    """Clear the flag of each string that does not contain all literals one after the other. Other strings are not examined.

    literals, bounds: literal number i is ``literals[bounds[i] : bounds[i + 1]]``; there are at least two. is_prefix: whether
    strings must begin with the first literal. is_suffix: whether they must end with the last one.

    Each literal takes its leftmost match, which leaves the most room for the following ones.
    """
    count = len(bounds) - 1
    for row in range(len(flags)):
        if flags[row] == uint8(0):
            continue
        at, end = uintp(offsets[row]), uintp(offsets[row + 1])
        is_match = True
        for i in range(count):
            start = uintp(bounds[i])
            size = uintp(bounds[i + 1]) - start
            if at + size > end:
                is_match = False
            elif i == 0 and is_prefix:
                is_match = _is_at(data, at, literals, start, size)
            elif i == count - 1 and is_suffix:
                at = end - size
                is_match = _is_at(data, at, literals, start, size)
            else:
                while at + size <= end and not _is_at(data, at, literals, start, size):
                    at += _ONE
                is_match = at + size <= end
            if not is_match:
                flags[row] = uint8(0)
                break
            at += size
