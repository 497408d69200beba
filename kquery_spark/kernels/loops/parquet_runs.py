"""Decodes the RLE / bit-packing hybrid, in which Parquet stores definition levels and dictionary indices.

Encodings.md of apache/parquet-format describes it: a sequence of runs. A run begins with a varint. If its lowest bit is 0,
the other bits are the number of repetitions of one integer, which follows in whole bytes. If it is 1, the other bits are the
number of groups of eight bit-packed integers. For 3-bit integers:

    0A 05        0A = 5 << 1: the integer 5, five times
    03 88 C6 FA  03 = 1 << 1 | 1: one group of eight, in 8 * 3 bits: 0, 1, 2, 3, 4, 5, 6, 7

Integers are packed from the lowest bit on: 88 C6 FA is the number 0xFAC688, or 111 110 101 100 011 010 001 000 in binary.

Every function reads runs through ``next_run``, which compares a run with ``end`` before its bytes are read. Malformed runs
make the result -1 or False. The caller then lets pyarrow read the chunk, which reports the damage.

Arguments and positions are unsigned (``uintp``), because numba checks for each signed position whether it counts from the
end. ``at`` must not be larger than ``end``, and ``end`` not larger than the array.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import int64, uint8, uintp

from kquery_spark.kernels.loops.memory import load64

MAX_BITS = 32  # the largest bit width of a dictionary index
NULL_ROW = int64(-1)  # stands for the position of a NULL row, which has no index
_ONE, _TWO, _THREE, _SEVEN, _EIGHT = uintp(1), uintp(2), uintp(3), uintp(7), uintp(8)
_VARINT_BITS = uintp(70)  # a varint has at most ten bytes with seven bits each
_MAX_RUN = uintp(1 << 31)
_NARROW_BITS = uintp(16)  # a group of eight integers of at most this width takes one or two loads
_NARROW_GROUP_BYTES, _WIDE_GROUP_BYTES = uintp(16), uintp(36)  # loaded from the start of a group on


@numba.njit
def varint(data: Any, at: Any, end: Any) -> Any:
    """Read a varint; returns it and the position after it, which is past ``end`` if the bytes end early or are too many."""
    value = shift = uintp(0)
    while at < end and shift < _VARINT_BITS:
        byte = uintp(data[at])
        at += _ONE
        value |= (byte & uintp(0x7F)) << shift
        if byte < uintp(0x80):
            return value, at
        shift += _SEVEN
    return uintp(0), end + _ONE


@numba.njit
def next_run(data: Any, at: Any, end: Any, bits: Any) -> Any:
    """Read the header of a run, and check that all bytes of the run exist, also those of padding behind the last row.

    Returns the number of integers (0 for a malformed run), whether they are packed, and the start and end of their bytes.
    """
    header, start = varint(data, at, end)
    run = header >> _ONE
    is_packed = (header & _ONE) == _ONE
    if start > end or run > _MAX_RUN:
        return uintp(0), is_packed, end, end
    size = run * bits if is_packed else (bits + _SEVEN) >> _THREE
    if size > end - start:
        return uintp(0), is_packed, end, end
    return (run * _EIGHT if is_packed else run), is_packed, start, start + size


@numba.njit(inline="always")
def _packed_at(data: Any, at: Any, number: Any, bits: Any) -> Any:
    """Read integer number ``number`` of those that are packed from ``at`` on; the caller checks that it exists.

    For example, number 3 with 12 bits begins at bit 36: in byte 4, after its lower 4 bits, which are skipped. One load
    suffices for at most 7 skipped bits and 32 bits. Near the end of the array the bytes are read one by one instead.
    """
    bit = number * bits
    byte, skipped = at + (bit >> _THREE), bit & _SEVEN
    mask = (_ONE << bits) - _ONE
    if byte + _EIGHT <= uintp(len(data)):
        return (load64(data, byte) >> skipped) & mask
    word = loaded_bits = uintp(0)
    while loaded_bits < bits + skipped:
        word |= uintp(data[byte]) << loaded_bits
        byte += _ONE
        loaded_bits += _EIGHT
    return (word >> skipped) & mask


@numba.njit
def repeated_integer(data: Any, at: Any, bits: Any) -> Any:
    """Read the integer of a repeated run, which is stored in as many whole bytes as ``bits`` need."""
    word = shift = uintp(0)
    while shift < bits:
        word |= uintp(data[at]) << shift
        at += _ONE
        shift += _EIGHT
    return word


@numba.njit
def _loadable_groups(data: Any, at: Any, groups: Any, bits: Any) -> Any:
    """Return the number of groups of eight integers that may be read with ``load64``.

    A group has ``bits`` bytes. The loads may read beyond the group, so the last groups before the end of the array must be
    read byte by byte.
    """
    size = uintp(len(data))
    reach = _NARROW_GROUP_BYTES if bits <= _NARROW_BITS else _WIDE_GROUP_BYTES
    if at + groups * bits + reach <= size:
        return groups
    return (size - reach - at) // bits if at + reach < size else uintp(0)


@numba.njit
def _second_half(bits: Any) -> Any:
    """Locate the upper four integers in a group of eight with at most 16 bits; returns whole bytes, and bits to skip.

    They begin ``4 * bits`` bits after the start of the group. If the width is odd, that is in the middle of a byte:
    with 5 bits at bit 20, which is byte 2, bit 4. So a group takes two loads of eight bytes: four integers with 16 bits
    are exactly one load, and four integers with 15 bits and the 4 skipped bits also fit into 64.
    """
    return bits >> _ONE, (bits & _ONE) << _TWO


@numba.njit(inline="always")
def _unpack_groups(data: Any, at: Any, groups: Any, bits: Any, out: Any, first: Any) -> None:
    """Unpack groups of eight integers of at most 32 bits to ``out`` from ``first`` on.

    Up to 8 bits, a group fits into one load. Integers with more than 16 bits take a load each. The last one begins at byte
    ``7 * bits / 8`` of the group, at most 28, so its load ends at most 36 bytes after the start of the group.
    """
    mask = (_ONE << bits) - _ONE
    if bits <= _EIGHT:
        for i in range(groups):
            word = load64(data, at + uintp(i) * bits)
            for j in range(8):
                out[first + uintp(j)] = (word >> (uintp(j) * bits)) & mask
            first += _EIGHT
    elif bits <= _NARROW_BITS:
        half, skipped = _second_half(bits)
        for i in range(groups):
            group = at + uintp(i) * bits
            low, high = load64(data, group), load64(data, group + half) >> skipped
            for j in range(4):
                out[first + uintp(j)] = (low >> (uintp(j) * bits)) & mask
            for j in range(4):
                out[first + uintp(j + 4)] = (high >> (uintp(j) * bits)) & mask
            first += _EIGHT
    else:
        for i in range(groups):
            for j in range(8):
                bit = uintp(j) * bits
                word = load64(data, at + uintp(i) * bits + (bit >> _THREE))
                out[first + uintp(j)] = (word >> (bit & _SEVEN)) & mask
            first += _EIGHT


@numba.njit
def _largest(numbers: Any, first: Any, count: Any) -> Any:
    """Return the largest of ``count`` unsigned integers from ``first`` on.

    Dictionaries list their values in the order of first occurrence, so in many pages about every second index is a new
    maximum. In a separate loop, the maximum is compiled to vector instructions. In the loop that unpacks the indices, it is
    compiled to a branch, which the processor mispredicts.
    """
    largest = numbers[first]
    for i in range(uintp(1), count):
        number = numbers[first + uintp(i)]
        largest = number if number > largest else largest
    return uintp(largest)


@numba.njit
def unpack_run(data: Any, at: Any, length: Any, bits: Any, out: Any, first: Any) -> Any:
    """Unpack ``length`` integers of at most 32 bits, at least one, to ``out`` from ``first`` on; returns the largest one.

    They are packed from ``at`` on; the caller checks that their bytes exist.
    """
    groups = _loadable_groups(data, at, length >> _THREE, bits)
    _unpack_groups(data, at, groups, bits, out, first)
    for i in range(groups * _EIGHT, length):
        out[first + uintp(i)] = _packed_at(data, at, uintp(i), bits)
    return _largest(out, first, length)


@numba.njit
def unpack_indices(data: Any, at: Any, end: Any, bits: Any, entries: Any, out: Any) -> Any:
    """Decode integers of at most 32 bits until ``out`` is full; False for malformed runs, or an integer >= ``entries``.

    The largest integer is compared at the end, so ``out`` may only be used if the result is True.
    """
    count = uintp(len(out))
    decoded = largest = uintp(0)
    while decoded < count:
        run, is_packed, start, at = next_run(data, at, end, bits)
        if run == uintp(0):
            return False
        length = min(run, count - decoded)
        if is_packed:
            largest = max(largest, unpack_run(data, start, length, bits, out, decoded))
        else:
            index = repeated_integer(data, start, bits)
            for i in range(length):
                out[decoded + uintp(i)] = index
            largest = max(largest, index)
        decoded += length
    return largest < entries


@numba.njit
def unpack_indices_at(
    data: Any,
    at: Any,
    end: Any,
    bits: Any,
    entries: Any,
    rows: Any,
    low: Any,
    high: Any,
    first: Any,
    out: Any,
) -> Any:
    """Look up single integers by their bit offset; False for malformed runs, or an integer >= ``entries``.

    Their positions are ``rows[low:high] - first``, in rising order; a row ``NULL_ROW`` gets ``entries``. The headers of all
    runs up to the last position are read, but runs that contain none of the positions are not decoded.
    """
    run_start = run_end = uintp(0)
    start, is_packed = at, False
    for k in range(low, high):
        if rows[k] == NULL_ROW:
            out[k - low] = entries
            continue
        position = uintp(rows[k] - first)
        while position >= run_end:
            run, is_packed, start, at = next_run(data, at, end, bits)
            if run == uintp(0):
                return False
            run_start = run_end
            run_end += run
        if is_packed:
            index = _packed_at(data, start, position - run_start, bits)
        else:
            index = repeated_integer(data, start, bits)
        if index >= entries:
            return False
        out[k - low] = index
    return True


@numba.njit
def filter_runs(data: Any, at: Any, end: Any, bits: Any, count: Any, states: Any, row: Any, out: Any) -> Any:
    """Decode ``count`` integers of at most 16 bits and write the numbers of the selected rows, without storing the integers.

    states: 1 for an integer that is selected, 0 for others, and 2 for those past the end of the dictionary. It has a state
    for each 16-bit integer, so no integer needs a bounds check. row: the number of the first row. out: has one item more
    than there are rows left.

    The states of a group of eight are combined with ``|``: 0 means that none of them is selected, which is the usual case.
    Otherwise each row number is written before its state is known, and the position advances only if the row is selected.
    This avoids a branch that the processor would often mispredict. Returns the number of selected rows, -1 for other runs.
    """
    decoded = hits = uintp(0)
    mask = (_ONE << bits) - _ONE
    half, skipped = _second_half(bits)
    while decoded < count:
        run, is_packed, start, at = next_run(data, at, end, bits)
        if run == uintp(0):
            return int64(-1)
        length = min(run, count - decoded)
        if is_packed:
            groups = _loadable_groups(data, start, length >> _THREE, bits)
            for i in range(groups):
                group = start + uintp(i) * bits
                low, high = load64(data, group), load64(data, group + half) >> skipped
                state = uint8(0)
                for j in range(4):
                    state |= states[(low >> (uintp(j) * bits)) & mask]
                    state |= states[(high >> (uintp(j) * bits)) & mask]
                if state:
                    if state > uint8(1):
                        return int64(-1)
                    first = row + decoded + (uintp(i) << _THREE)
                    for j in range(4):
                        out[hits] = first + uintp(j)
                        hits += uintp(states[(low >> (uintp(j) * bits)) & mask])
                    for j in range(4):
                        out[hits] = first + uintp(j + 4)
                        hits += uintp(states[(high >> (uintp(j) * bits)) & mask])
            for i in range(groups * _EIGHT, length):
                state = states[_packed_at(data, start, uintp(i), bits)]
                if state > uint8(1):
                    return int64(-1)
                out[hits] = row + decoded + uintp(i)
                hits += uintp(state)
        else:
            state = states[repeated_integer(data, start, bits) & uintp(0xFFFF)]
            if state > uint8(1):
                return int64(-1)
            if state:
                for i in range(length):
                    out[hits + uintp(i)] = row + decoded + uintp(i)
                hits += length
        decoded += length
    return int64(hits)
