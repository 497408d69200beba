"""The loops over Parquet's codes that neither pyarrow nor numpy offers, compiled by numba.

Levels and dictionary codes are runs of one value and runs packed bit by bit, one behind the other (Encodings.md of
apache/parquet-format: RLE / bit-packing hybrid). Nothing here trusts its input: what would read behind ``end`` gives
-1, and the caller leaves the chunk to pyarrow, which says what is wrong with it.

Only ``compiled.py`` imports this module. Indexes are unsigned, as for signed ones numba asks each time whether they
count from the end.
"""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir
import numba
import numpy as np
from numba import int64, uint8, uint16, uint64, uintp
from numba.extending import intrinsic

_ONE, _THREE, _SEVEN, _EIGHT = uintp(1), uintp(3), uintp(7), uintp(8)
_LENGTH = uintp(4)  # bytes before the levels of a data page of version 1
_BAD = int64(1 << 32)  # larger than any code
_EIGHT_VALID = uint64(0x0101010101010101)
_HEADER_BITS = uintp(35)  # at most, seven a byte
_LOADED = (
    16  # bytes that are loaded for eight codes; nearer to the end of the array they are read byte by byte
)

_Bytes = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_Flags, _Codes, _Rows = numba.uint8[::1], numba.uint16[::1], numba.int64[::1]
_at = numba.uintp


def _compiled(result: Any, *arguments: Any) -> Any:
    """Compiled for these types when the module is imported, or taken from the cache; runs without the interpreter's lock."""
    return numba.njit(result(*arguments), cache=True, nogil=True)


@intrinsic
def _load64(typing: Any, data: Any, at: Any) -> Any:
    """The eight bytes from ``at`` on as a little-endian integer, wherever they are."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return numba.types.uint64(data, at), generate


@numba.njit(inline="always")
def _run_header(data: Any, at: Any, end: Any) -> Any:
    """The number before a run and where the run begins; 0 where the bytes end too early."""
    value = shift = uintp(0)
    while at < end and shift < _HEADER_BITS:
        byte = uintp(data[at])
        at += _ONE
        value |= (byte & uintp(0x7F)) << shift
        if byte < uintp(0x80):
            return value, at
        shift += _SEVEN
    return uintp(0), at


@numba.njit
def _flags(data: Any, at: Any, end: Any, out: Any) -> Any:
    """Fill ``out`` with levels of one bit as 0 or 1; gives how many are 1."""
    count = uintp(len(out))
    done = ones = uintp(0)
    while done < count:
        header, at = _run_header(data, at, end)
        run = header >> _ONE
        if run == uintp(0):
            return int64(-1)
        if header & _ONE:
            wanted = min(run * _EIGHT, count - done)
            if at + (wanted + _SEVEN) // _EIGHT > end:
                return int64(-1)
            for i in range(wanted):
                place = uintp(i)
                bit = (data[at + (place >> _THREE)] >> uint8(place & _SEVEN)) & uint8(1)
                out[done + place] = bit
                ones += uintp(bit)
            at += run
        else:
            wanted = min(run, count - done)
            if at >= end or data[at] > uint8(1):
                return int64(-1)
            for i in range(wanted):
                out[done + uintp(i)] = data[at]
            ones += wanted * uintp(data[at])
            at += _ONE
        done += wanted
    return int64(ones)


@numba.njit
def _codes(data: Any, at: Any, end: Any, width: Any, out: Any) -> Any:
    """Fill ``out`` with integers of ``width`` bits, at most 16; gives the largest, or ``_BAD``."""
    count = uintp(len(out))
    done = uintp(0)
    largest = uint64(0)
    bits = uint64(width)
    mask = (uint64(1) << bits) - uint64(1)
    group, half = uintp(width), uintp(width) >> _ONE
    odd = (uint64(width) & uint64(1)) << uint64(2)  # four codes of an odd width end within a byte
    safe = uintp(max(len(data) - _LOADED, 0))
    while done < count:
        header, at = _run_header(data, at, end)
        run = header >> _ONE
        if run == uintp(0):
            return _BAD
        if header & _ONE:
            wanted = min(run * _EIGHT, count - done)
            if at + (wanted * group + _SEVEN) // _EIGHT > end:
                return _BAD
            whole = wanted >> _THREE
            if at + whole * group > safe:
                whole = (safe - at) // group if at < safe else uintp(0)
            to = done
            for i in range(whole):
                place = at + uintp(i) * group
                first = _load64(data, place)
                second = _load64(data, place + half) >> odd
                for j in range(4):
                    code = (first >> (uint64(j) * bits)) & mask
                    out[to + uintp(j)] = code
                    largest = max(largest, code)
                for j in range(4):
                    code = (second >> (uint64(j) * bits)) & mask
                    out[to + uintp(j + 4)] = code
                    largest = max(largest, code)
                to += _EIGHT
            for i in range(whole * _EIGHT, wanted):
                bit = uint64(i) * bits
                place, skipped = at + uintp(bit >> uint64(3)), bit & uint64(7)
                code, have = uint64(0), uint64(0)
                while have < bits + skipped:
                    code |= uint64(data[place]) << have
                    place += _ONE
                    have += uint64(8)
                code = (code >> skipped) & mask
                out[done + uintp(i)] = code
                largest = max(largest, code)
            at += run * group
        else:
            wanted = min(run, count - done)
            if at + ((group + _SEVEN) >> _THREE) > end:
                return _BAD
            code = uint64(data[at]) if bits > uint64(0) else uint64(0)
            if bits > uint64(8):
                code |= uint64(data[at + _ONE]) << uint64(8)
            for i in range(wanted):
                out[done + uintp(i)] = code
            largest = max(largest, code)
            at += (group + _SEVEN) >> _THREE
        done += wanted
    return int64(largest)


@numba.njit
def _spread(found: Any, valid: Any, null: Any, out: Any) -> None:
    """The codes of the rows that are valid, ``null`` for the others; ``found`` needs a code of any kind at its end."""
    at = place = uintp(0)
    count = uintp(len(out))
    while place < count:
        if (
            place + _EIGHT <= count and _load64(valid, place) == _EIGHT_VALID
        ):  # most are, where NULLs are rare
            for i in range(8):
                out[place + uintp(i)] = found[at + uintp(i)]
            at += _EIGHT
            place += _EIGHT
        else:
            for _ in range(min(_EIGHT, count - place)):
                out[place] = found[at] if valid[place] else null
                at += uintp(valid[place])
                place += _ONE


@_compiled(int64, _Bytes, _Rows, _Rows, _Rows, uint16, _Codes)
def codes(data: Any, starts: Any, counts: Any, levels: Any, values: Any, out: Any) -> Any:
    """Fill ``out`` with the codes of the pages of a chunk, ``values`` for NULL; gives how many are NULL, -1 for other pages.

    starts: where each page's data begins in ``data``, and at last where the last one's ends. counts: rows of each. levels:
    bytes of the levels that come first, 0 for none, -1 where the bytes before them say so.
    """
    longest = 0
    for page in range(len(counts)):
        longest = max(longest, counts[page])
    valid = np.empty(longest, np.uint8)
    found = np.zeros(longest + 1, np.uint16)
    done = nulls = 0
    for page in range(len(counts)):
        at, end, rows = uintp(starts[page]), uintp(starts[page + 1]), counts[page]
        present, level_bytes = rows, uintp(0)
        if levels[page] < 0:
            if at + _LENGTH > end:
                return int64(-1)
            for i in range(4):
                level_bytes |= uintp(data[at + uintp(i)]) << uintp(8 * i)
            at += _LENGTH
        else:
            level_bytes = uintp(levels[page])
        if at + level_bytes >= end:
            return int64(-1)
        if level_bytes:
            present = _flags(data, at, at + level_bytes, valid[:rows])
            at += level_bytes
        width = data[at]
        if present < 0 or width > uint8(16):
            return int64(-1)
        if present == rows:
            if _codes(data, at + _ONE, end, width, out[done : done + rows]) >= int64(values):
                return int64(-1)
        else:
            if present and _codes(data, at + _ONE, end, width, found[:present]) >= int64(values):
                return int64(-1)
            _spread(found, valid, values, out[done : done + rows])
            nulls += rows - present
        done += rows
    return int64(nulls)


@_compiled(int64, _Codes, _Flags, _Rows)
def matching(found: Any, wanted: Any, out: Any) -> Any:
    """The numbers of the rows whose code is wanted, into ``out``, which has place for all; gives how many."""
    count = uintp(0)
    for i in range(len(found)):
        place = uintp(i)
        out[count] = place
        count += uintp(wanted[uintp(found[place])])
    return int64(count)


@_compiled(int64, _Codes, _Flags, _Rows, _Rows)
def matching_of(found: Any, wanted: Any, rows: Any, out: Any) -> Any:
    """The same of some rows only."""
    count = uintp(0)
    for i in range(len(rows)):
        row = rows[uintp(i)]
        out[count] = row
        count += uintp(wanted[uintp(found[uintp(row)])])
    return int64(count)
