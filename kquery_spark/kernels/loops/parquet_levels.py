"""Decodes bits: definition levels, which are runs of one-bit integers, and plain Boolean values.

The functions read runs through ``next_run``, as those of ``parquet_runs.py`` do: malformed runs make the result -1 or False,
and positions are unsigned.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import int64, uint8, uint64, uintp

from kquery_spark.kernels.loops.memory import load64, store64
from kquery_spark.kernels.loops.parquet_runs import NULL_ROW, next_run

_ONE, _THREE, _SEVEN, _EIGHT, _WORD = uintp(1), uintp(3), uintp(7), uintp(8), uintp(64)


@numba.njit
def unpack_bits(data: Any, at: Any, length: Any, out: Any, first: Any) -> Any:
    """Unpack ``length`` bits to bytes of ``out`` from ``first`` on; returns the number of ones.

    Eight bits become eight bytes at once: the byte is repeated in a word, each copy keeps one of its bits, and the addition
    moves this bit to the highest position of its byte. The caller checks that the bits and bytes exist.
    """
    groups, ones = length >> _THREE, uintp(0)
    for i in range(groups):
        byte = uint64(data[at + uintp(i)])
        word = (byte * uint64(0x0101010101010101)) & uint64(0x8040201008040201)
        word = ((word + uint64(0x7F7F7F7F7F7F7F7F)) >> uint64(7)) & uint64(0x0101010101010101)
        store64(out, first + _EIGHT * uintp(i), word)
        ones += uintp((word * uint64(0x0101010101010101)) >> uint64(56))
    for i in range(groups * _EIGHT, length):
        number = uintp(i)
        flag = (data[at + (number >> _THREE)] >> uint8(number & _SEVEN)) & uint8(1)
        out[first + number] = flag
        ones += uintp(flag)
    return ones


@numba.njit
def unpack_flags(data: Any, at: Any, end: Any, out: Any) -> Any:
    """Decode one-bit integers to ``out`` as 0 or 1; returns the number of ones, or -1 for malformed runs."""
    count = uintp(len(out))
    decoded = ones = uintp(0)
    while decoded < count:
        run, is_packed, start, at = next_run(data, at, end, _ONE)
        if run == uintp(0):
            return int64(-1)
        length = min(run, count - decoded)
        if is_packed:
            ones += unpack_bits(data, start, length, out, decoded)
        else:
            flag = data[start]
            if flag > uint8(1):
                return int64(-1)
            for i in range(length):
                out[decoded + uintp(i)] = flag
            ones += length * uintp(flag)
        decoded += length
    return int64(ones)


@numba.njit
def are_all_ones(data: Any, at: Any, end: Any, count: Any) -> Any:
    """True if one-bit integers are a single repeated run of at least ``count`` ones."""
    run, is_packed, start, _ = next_run(data, at, end, _ONE)
    return not is_packed and run > uintp(0) and run >= count and data[start] == uint8(1)


@numba.njit(inline="always")
def _ones(word: Any) -> Any:
    """Count the ones in a word (population count): adds 2, 4 and 8 bits, then all bytes by a multiplication."""
    word -= (word >> uint64(1)) & uint64(0x5555555555555555)
    word = (word & uint64(0x3333333333333333)) + ((word >> uint64(2)) & uint64(0x3333333333333333))
    word = (word + (word >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return uintp((word * uint64(0x0101010101010101)) >> uint64(56))


@numba.njit
def _ones_between(data: Any, at: Any, low: Any, high: Any) -> Any:
    """Count the ones among the bits ``low`` to ``high`` (exclusive) that are packed from ``at`` on.

    ``low`` must be a multiple of eight.
    """
    ones = uintp(0)
    while low + _WORD <= high and at + (low >> _THREE) + _EIGHT <= uintp(len(data)):
        ones += _ones(load64(data, at + (low >> _THREE)))
        low += _WORD
    while low < high:
        byte = uint64(data[at + (low >> _THREE)])
        ones += _ones(byte & ((uint64(1) << uint64(min(high - low, _EIGHT))) - uint64(1)))
        low += _EIGHT
    return ones


@numba.njit
def replace_rows_by_value_positions(data: Any, at: Any, end: Any, rows: Any) -> Any:
    """Replace row numbers by positions among the values of a page, which does not store NULLs; False for malformed levels.

    For the levels 1 0 1 1, the rows [0, 1, 3] become [0, NULL_ROW, 2]. rows: in rising order. Levels of rows in between are
    counted, eight bytes at a time, but not decoded.
    """
    # The current run has the rows ``low`` to ``high``. ``ones`` counts the rows that are not NULL, up to row ``counted`` of
    # the run (a multiple of eight), or up to its start for a repeated run, whose level is ``level``.
    low = high = ones = counted = level = uintp(0)
    start, is_packed = at, False
    for i in range(len(rows)):
        row = uintp(rows[i])
        while row >= high:
            ones += _ones_between(data, start, counted, high - low) if is_packed else level * (high - low)
            run, is_packed, start, at = next_run(data, at, end, _ONE)
            if run == uintp(0):
                return False
            low, counted = high, uintp(0)
            high += run
            level = uintp(data[start])
            if not is_packed and level > _ONE:
                return False
        inside = row - low
        if is_packed:
            before = inside & ~_SEVEN
            ones += _ones_between(data, start, counted, before)
            counted = before
            is_valid = (uintp(data[start + (inside >> _THREE)]) >> (inside & _SEVEN)) & _ONE
            position = ones + _ones_between(data, start, before, inside)
        else:
            is_valid, position = level, ones + level * inside
        rows[i] = position if is_valid else NULL_ROW
    return True
