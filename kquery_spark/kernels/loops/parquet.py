"""Unpacks the definition levels and dictionary indices of a column chunk, and finds rows whose index is selected.

In this module a "code" is a dictionary index of at most 16 bits. The code after the last value stands for NULL.

Levels and codes are stored in the RLE / bit-packing hybrid (Encodings.md of apache/parquet-format), a sequence of runs.
A run begins with a varint. If its lowest bit is 0, the other bits are the number of repetitions of one value, which follows
in whole bytes. If it is 1, the other bits are the number of groups of eight bit-packed values. For 3-bit codes:

    0A 05        0A = 5 << 1: the code 5, five times
    03 88 C6 FA  03 = 1 << 1 | 1: one group of eight, in 8 * 3 bits: 0, 1, 2, 3, 4, 5, 6, 7

Codes are packed from the lowest bit on: 88 C6 FA is the number 0xFAC688, or 111 110 101 100 011 010 001 000 in binary.

No function trusts its input. Each run is compared with ``end`` before its bytes are read, and a function returns -1 for a
run that would extend past it. The caller then lets pyarrow read the chunk, which reports the damage.

Array positions are unsigned (``uintp``), because numba checks for each signed position whether it counts from the end.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint8, uint16, uint64, uintp

from kquery_spark.kernels.loops.memory import load64

_ONE, _THREE, _SEVEN, _EIGHT, _WORD = uintp(1), uintp(3), uintp(7), uintp(8), uintp(64)
_LENGTH = uintp(4)  # bytes before the levels of a data page of version 1
_BAD = int64(
    1 << 32
)  # returned for malformed runs; larger than any code, so that one comparison finds both errors
_EIGHT_VALID = uint64(0x0101010101010101)
_NONE = uint8(
    2
)  # the state of a code past the end of the dictionary, next to 0 (not selected) and 1 (selected)
_HEADER_BITS = uintp(35)  # the longest run header: five bytes with seven bits each
_NULL = int64(-1)  # the position of a row that has no code because it is NULL
_LOADED = uintp(16)  # the fast loops load this many bytes for eight codes

_Bytes = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_Flags, _Codes, _Rows = numba.uint8[::1], numba.uint16[::1], numba.int64[::1]


def _compiled(result: Any, *arguments: Any) -> Any:
    """Compile a function for these types at import, or load it from the cache; it runs without the GIL."""
    return numba.njit(result(*arguments), cache=True, nogil=True)


@numba.njit(inline="always")
def _run_header(data: Any, at: Any, end: Any) -> Any:
    """Read the header of a run; returns it and the position after it. The header is 0 if the bytes end too early."""
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
def flags_of(data: Any, at: Any, end: Any, out: Any) -> Any:
    """Decode one-bit levels to ``out`` as 0 or 1; returns the number of ones, or -1 for malformed levels."""
    count = uintp(len(out))
    done = ones = uintp(0)
    while done < count:
        header, at = _run_header(data, at, end)
        run = header >> _ONE
        if run == uintp(0):
            return int64(-1)
        if header & _ONE:
            length = min(run * _EIGHT, count - done)
            if run > end - at:  # a run is complete, also where its last values belong to no row
                return int64(-1)
            for i in range(length):
                index = uintp(i)
                bit = (data[at + (index >> _THREE)] >> uint8(index & _SEVEN)) & uint8(1)
                out[done + index] = bit
                ones += uintp(bit)
            at += run
        else:
            length = min(run, count - done)
            if at >= end or data[at] > uint8(1):
                return int64(-1)
            for i in range(length):
                out[done + uintp(i)] = data[at]
            ones += length * uintp(data[at])
            at += _ONE
        done += length
    return int64(ones)


@numba.njit(inline="always")
def _code(data: Any, at: Any, number: Any, bits: Any) -> Any:
    """Read code number ``number`` of those packed from ``at`` on, byte by byte, so that no byte after it is loaded."""
    bit = uint64(number) * bits
    byte, skipped = at + uintp(bit >> uint64(3)), bit & uint64(7)
    code, have = uint64(0), uint64(0)
    while have < bits + skipped:
        code |= uint64(data[byte]) << have
        byte += _ONE
        have += uint64(8)
    return (code >> skipped) & ((uint64(1) << bits) - uint64(1))


@numba.njit(inline="always")
def _loadable(data: Any, at: Any, groups: Any, group: Any) -> Any:
    """The number of groups of eight codes that the fast loops may read with ``load64``.

    group: the number of bytes in a group, which is the bit width of the codes. A fast loop loads at most 16 bytes from the
    start of a group on, so the last groups before the end of the array must be read byte by byte.
    """
    size = uintp(len(data))
    if at + groups * group + _LOADED <= size:
        return groups
    return (size - _LOADED - at) // group if at + _LOADED < size else uintp(0)


@numba.njit(inline="always")
def _repeated(data: Any, at: Any, bits: Any) -> Any:
    """Read the code of a repeated run, which is stored in no, one or two whole bytes."""
    code = uint64(data[at]) if bits > uint64(0) else uint64(0)
    if bits > uint64(8):
        code |= uint64(data[at + _ONE]) << uint64(8)
    return code


@numba.njit
def _codes(data: Any, at: Any, end: Any, width: Any, out: Any) -> Any:
    """Decode codes of ``width`` bits, at most 16, to ``out``; returns the largest one, or ``_BAD``.

    A group of eight codes has ``width`` bytes, which may be more than the eight bytes of a load. So each group takes two
    loads: four codes begin at its first byte, and four codes begin ``4 * width`` bits later. If ``width`` is odd, that is in
    the middle of a byte: with 5 bits at bit 20, which is byte 2 (``half``), bit 4 (``odd``). Four codes with 16 bits
    are exactly one load; four codes with 15 bits and the 4 skipped bits also fit into 64.
    """
    count = uintp(len(out))
    done = uintp(0)
    largest = uint64(0)
    bits = uint64(width)
    mask = (uint64(1) << bits) - uint64(1)
    group, half = uintp(width), uintp(width) >> _ONE
    odd = (uint64(width) & uint64(1)) << uint64(2)
    while done < count:
        header, at = _run_header(data, at, end)
        run = header >> _ONE
        if run == uintp(0):
            return _BAD
        if header & _ONE:
            length = min(run * _EIGHT, count - done)
            # the last run may have more codes than rows, since it is padded to a group of eight
            if run * group > end - at:
                return _BAD
            whole = _loadable(data, at, length >> _THREE, group)
            to = done
            for i in range(whole):
                offset = at + uintp(i) * group
                first = load64(data, offset)
                second = load64(data, offset + half) >> odd
                for j in range(4):
                    code = (first >> (uint64(j) * bits)) & mask
                    out[to + uintp(j)] = code
                    largest = max(largest, code)
                for j in range(4):
                    code = (second >> (uint64(j) * bits)) & mask
                    out[to + uintp(j + 4)] = code
                    largest = max(largest, code)
                to += _EIGHT
            for i in range(whole * _EIGHT, length):
                code = _code(data, at, uintp(i), bits)
                out[done + uintp(i)] = code
                largest = max(largest, code)
            at += run * group
        else:
            length = min(run, count - done)
            if at + ((group + _SEVEN) >> _THREE) > end:
                return _BAD
            code = _repeated(data, at, bits)
            for i in range(length):
                out[done + uintp(i)] = code
            largest = max(largest, code)
            at += (group + _SEVEN) >> _THREE
        done += length
    return int64(largest)


@numba.njit
def _spread(packed: Any, valid: Any, null: Any, out: Any) -> None:
    """Move the packed codes of the valid rows to their rows, and write ``null`` to the others.

    For the packed codes [7, 8, x] and the flags [1, 0, 1] the result is [7, null, 8]. ``packed`` needs one item more (x)
    than there are valid rows, since the compiled loop may also read ``packed[at]`` for NULL rows after the last valid one.
    """
    at = row = uintp(0)
    count = uintp(len(out))
    while row < count:
        if row + _EIGHT <= count and load64(valid, row) == _EIGHT_VALID:  # the usual case if NULLs are rare
            for i in range(8):
                out[row + uintp(i)] = packed[at + uintp(i)]
            at += _EIGHT
            row += _EIGHT
        else:
            for _ in range(min(_EIGHT, count - row)):
                out[row] = packed[at] if valid[row] else null
                at += uintp(valid[row])
                row += _ONE


@numba.njit(inline="always")
def _page(data: Any, at: Any, end: Any, level_bytes: Any) -> Any:
    """The start of a page's levels, and the position of the bit width of its codes; ``end`` twice for a malformed page.

    A page consists of [size of the levels in four bytes, version 1 only] [levels] [bit width in one byte] [runs of codes].
    level_bytes: the size of the levels; -1 if it precedes them. The result ensures that the byte at the bit width exists.
    """
    size = uintp(0)
    if level_bytes < 0:
        if at + _LENGTH > end:
            return end, end
        for i in range(4):
            size |= uintp(data[at + uintp(i)]) << uintp(8 * i)
        at += _LENGTH
    else:
        size = uintp(level_bytes)
    if at + size >= end or data[at + size] > uint8(16):
        return end, end
    return at, at + size


@numba.njit
def _levels(data: Any, at: Any, end: Any, level_bytes: Any, valid: Any) -> Any:
    """The position of the bit width of a page's codes, and the number of rows that are not NULL; -1 for a malformed page.

    valid: receives a flag for each row, if the page has levels.
    """
    first, body = _page(data, at, end, level_bytes)
    if body == end:
        return body, int64(-1)
    return body, int64(len(valid)) if body == first else flags_of(data, first, body, valid)


@numba.njit
def _page_codes(
    data: Any, body: Any, end: Any, present: Any, values: Any, valid: Any, scratch: Any, out: Any
) -> Any:
    """Decode the codes of a page's rows to ``out``; ``present`` rows are not NULL. False for a malformed page.

    scratch: has one item more than the page has rows; receives the codes before they are spread over the rows.
    """
    some = out if present == len(out) else scratch[:present]
    if present and _codes(data, body + _ONE, end, data[body], some) >= int64(values):
        return False
    if present < len(out):
        _spread(scratch, valid, values, out)
    return True


@numba.njit(inline="always")
def _longest(counts: Any) -> Any:
    """The number of rows in the longest page."""
    longest = 0
    for page in range(len(counts)):
        longest = max(longest, counts[page])
    return longest


@_compiled(int64, _Bytes, _Rows, _Rows, _Rows, _Rows, uint16, _Codes)
def codes(data: Any, starts: Any, ends: Any, counts: Any, levels: Any, values: Any, out: Any) -> Any:
    """Decode the codes of all pages of a chunk to ``out``, ``values`` for NULL; returns the number of NULLs, or -1.

    starts, ends: the range of each page in ``data``. counts: the number of rows of each page. levels: the size of each
    page's levels; 0 without levels, -1 if the size precedes them. values: the number of values in the dictionary. Returns
    -1 for malformed pages.
    """
    longest = _longest(counts)
    valid, scratch = np.empty(longest, np.uint8), np.zeros(longest + 1, np.uint16)
    done = nulls = 0
    for page in range(len(counts)):
        end, rows = uintp(ends[page]), counts[page]
        flags = valid[:rows]
        body, present = _levels(data, uintp(starts[page]), end, levels[page], flags)
        if present < 0 or not _page_codes(
            data, body, end, present, values, flags, scratch, out[done : done + rows]
        ):
            return int64(-1)
        nulls += rows - present
        done += rows
    return int64(nulls)


@numba.njit
def _matching(row_codes: Any, selected: Any, row: Any, out: Any) -> Any:
    """Write the numbers of the rows, from ``row`` on, whose code is selected; returns how many there are.

    Each row number is written before the flag is known, and the position advances only if the row is selected. This
    avoids a branch that the processor would often mispredict, and needs one item more in ``out`` than there are rows.
    """
    count = uintp(0)
    for i in range(len(row_codes)):
        out[count] = row + int64(i)
        count += uintp(selected[uintp(row_codes[uintp(i)])])
    return int64(count)


@numba.njit
def _where(data: Any, at: Any, end: Any, width: Any, count: Any, selected: Any, row: Any, out: Any) -> Any:
    """Decode codes of ``width`` bits and write the numbers of the selected rows in one pass, without storing the codes.

    row: the number of the first row. selected: the state of each possible 16-bit code, so no code needs a bounds check.
    The states of eight codes are combined with ``|``: 0 means that none of them is selected, which is the usual case, and
    the bit ``_NONE`` that one is past the end of the dictionary. Returns the number of selected rows, -1 for other runs.
    """
    count, row = uintp(count), uintp(row)
    done = hits = uintp(0)
    bits, group, half = uint64(width), uintp(width), uintp(width) >> _ONE
    mask = (uint64(1) << bits) - uint64(1)
    odd = (uint64(width) & uint64(1)) << uint64(2)
    while done < count:
        header, at = _run_header(data, at, end)
        run = header >> _ONE
        if run == uintp(0):
            return int64(-1)
        if header & _ONE:
            some = min(run * _EIGHT, count - done)
            if at + (some * group + _SEVEN) // _EIGHT > end:
                return int64(-1)
            whole = _loadable(data, at, some >> _THREE, group)
            for i in range(whole):
                offset = at + uintp(i) * group
                first = load64(data, offset)
                second = load64(data, offset + half) >> odd
                state = uint8(0)
                for j in range(4):
                    state |= selected[uintp((first >> (uint64(j) * bits)) & mask)]
                    state |= selected[uintp((second >> (uint64(j) * bits)) & mask)]
                if state:
                    if state & _NONE:
                        return int64(-1)
                    # as in ``_matching``: write first, then advance by the flag
                    to = row + done + (uintp(i) << _THREE)
                    for j in range(4):
                        out[hits] = to + uintp(j)
                        hits += uintp(selected[uintp((first >> (uint64(j) * bits)) & mask)])
                    for j in range(4):
                        out[hits] = to + uintp(j + 4)
                        hits += uintp(selected[uintp((second >> (uint64(j) * bits)) & mask)])
            for i in range(whole * _EIGHT, some):
                state = selected[uintp(_code(data, at, uintp(i), bits))]
                if state & _NONE:
                    return int64(-1)
                out[hits] = row + done + uintp(i)
                hits += uintp(state)
            at += run * group
        else:
            some = min(run, count - done)
            if at + ((group + _SEVEN) >> _THREE) > end:
                return int64(-1)
            state = selected[uintp(_repeated(data, at, bits))]
            if state & _NONE:
                return int64(-1)
            if state:
                for i in range(some):
                    out[hits + uintp(i)] = row + done + uintp(i)
                hits += some
            at += (group + _SEVEN) >> _THREE
        done += some
    return int64(hits)


@_compiled(int64, _Bytes, _Rows, _Rows, _Rows, _Rows, _Flags, _Rows)
def where(data: Any, starts: Any, ends: Any, counts: Any, levels: Any, selected: Any, out: Any) -> Any:
    """Write the numbers of the rows of a chunk whose value is selected; returns how many there are, -1 for malformed pages.

    selected: a flag for each value of the dictionary; the last flag is that of NULL. out: has one item more than the chunk
    has rows. The other parameters are those of ``codes``.
    """
    values = uint16(len(selected) - 1)
    states = np.empty(1 << 16, np.uint8)
    for code in range(len(states)):
        states[uintp(code)] = selected[uintp(code)] if uint64(code) < uint64(values) else _NONE
    longest = _longest(counts)
    valid, decoded = np.empty(longest, np.uint8), np.zeros(longest + 1, np.uint16)
    spread = np.empty(longest, np.uint16)
    done, hits = int64(0), int64(0)  # with a plain 0, numba would compile the callee for literals, too
    for page in range(len(counts)):
        end, rows = uintp(ends[page]), counts[page]
        flags = valid[:rows]
        body, present = _levels(data, uintp(starts[page]), end, levels[page], flags)
        # without NULLs, codes are compared while they are unpacked; with NULLs, they must be assigned to rows first
        if present == rows:
            more = _where(data, body + _ONE, end, data[body], rows, states, done, out[hits:])
        elif present >= 0 and _page_codes(data, body, end, present, values, flags, decoded, spread[:rows]):
            more = _matching(spread[:rows], selected, done, out[hits:])
        else:
            more = int64(-1)
        if more < 0:
            return int64(-1)
        hits += more
        done += rows
    return int64(hits)


@numba.njit(inline="always")
def _ones(word: Any) -> Any:
    """The number of ones in a word (population count): sums of 2, 4 and 8 bits, then all bytes by a multiplication."""
    word -= (word >> uint64(1)) & uint64(0x5555555555555555)
    word = (word & uint64(0x3333333333333333)) + ((word >> uint64(2)) & uint64(0x3333333333333333))
    word = (word + (word >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return uintp((word * uint64(0x0101010101010101)) >> uint64(56))


@numba.njit
def _ones_between(data: Any, at: Any, low: Any, high: Any) -> Any:
    """The number of ones among the bits ``low`` to ``high`` (exclusive) that are packed from ``at`` on.

    ``low`` must be a multiple of eight.
    """
    ones = uintp(0)
    while low + _WORD <= high and at + (low >> _THREE) + _LOADED <= uintp(len(data)):
        ones += _ones(load64(data, at + (low >> _THREE)))
        low += _WORD
    while low < high:
        byte = uint64(data[at + (low >> _THREE)])
        ones += _ones(byte & ((uint64(1) << uint64(min(high - low, _EIGHT))) - uint64(1)))
        low += _EIGHT
    return ones


@numba.njit
def _value_positions(data: Any, at: Any, end: Any, count: Any, rows: Any, out: Any) -> Any:
    """Convert row numbers into positions among the values of a page, which does not store NULLs; False for other levels.

    For the levels 1 0 1 1 and the rows [0, 1, 3] the positions are [0, _NULL, 2]. count: the number of rows of the page.
    rows: in rising order. out: may be ``rows`` itself. Levels of rows in between are counted, eight bytes at a time, but
    not decoded.
    """
    # The current run has the rows ``low`` to ``high``. ``ones`` counts the rows that are not NULL, up to row ``counted`` of
    # the run (a multiple of eight), or up to its start for a repeated run, whose level is ``level``.
    low = high = ones = counted = uintp(0)
    bits, is_packed, level = at, False, uintp(0)
    for i in range(len(rows)):
        row = uintp(rows[i])
        while row >= high:
            ones += _ones_between(data, bits, counted, high - low) if is_packed else level * (high - low)
            header, bits = _run_header(data, at, end)
            run = header >> _ONE
            is_packed = (header & _ONE) == _ONE
            low, counted = high, uintp(0)
            high = min(low + (run * _EIGHT if is_packed else run), count)
            at = bits + (run if is_packed else _ONE)
            if run == uintp(0) or bits + (((high - low + _SEVEN) >> _THREE) if is_packed else _ONE) > end:
                return False
            level = uintp(data[bits])
            if not is_packed and level > _ONE:
                return False
        inside = row - low
        if is_packed:
            before = inside & ~_SEVEN
            ones += _ones_between(data, bits, counted, before)
            counted = before
            is_valid = (uintp(data[bits + (inside >> _THREE)]) >> (inside & _SEVEN)) & _ONE
            position = ones + _ones_between(data, bits, before, inside)
        else:
            is_valid, position = level, ones + level * inside
        out[i] = position if is_valid else _NULL
    return True


@numba.njit
def _codes_at(data: Any, body: Any, end: Any, values: Any, positions: Any, out: Any) -> Any:
    """Look up the codes at these positions, which are in rising order, by their bit offset; False for a malformed page.

    A position ``_NULL`` gets the code ``values``. Runs that contain none of the positions are skipped by their headers.
    """
    low = high = uintp(0)  # the range of positions in the current run
    bits, group = uint64(data[body]), uintp(data[body])
    at = start = body + _ONE
    is_packed = False
    for i in range(len(positions)):
        if positions[i] == _NULL:
            out[i] = values
            continue
        position = uintp(positions[i])
        while position >= high:
            header, start = _run_header(data, at, end)
            run = header >> _ONE
            is_packed = (header & _ONE) == _ONE
            low, high = high, high + (run * _EIGHT if is_packed else run)
            at = start + (run * group if is_packed else (group + _SEVEN) >> _THREE)
            if run == uintp(0):
                return False
        number = position - low if is_packed else uintp(0)
        if start + ((((number + _ONE) * group if is_packed else group) + _SEVEN) >> _THREE) > end:
            return False
        code = _code(data, start, number, bits) if is_packed else _repeated(data, start, bits)
        if code >= uint64(values):
            return False
        out[i] = code
    return True


@_compiled(int64, _Bytes, _Rows, _Rows, _Rows, _Rows, uint16, _Rows, _Codes)
def codes_of(
    data: Any, starts: Any, ends: Any, counts: Any, levels: Any, values: Any, rows: Any, out: Any
) -> Any:
    """Look up the codes of selected rows, which are in rising order; returns 0, or -1 for malformed pages.

    Pages and runs without selected rows are skipped, so this detects less damage than ``codes``. The other parameters are
    those of ``codes``.
    """
    page_rows = np.empty(len(rows), np.int64)
    done, low = int64(0), int64(0)
    for page in range(len(counts)):
        high = low
        while high < len(rows) and rows[high] < done + counts[page]:
            page_rows[high] = rows[high] - done
            high += 1
        if high > low:
            end, some = uintp(ends[page]), page_rows[low:high]
            first, body = _page(data, uintp(starts[page]), end, levels[page])
            if body == end:
                return int64(-1)
            # with levels, the row numbers in ``some`` are replaced in place by positions among the page's values
            if body > first and not _value_positions(data, first, body, uintp(counts[page]), some, some):
                return int64(-1)
            if not _codes_at(data, body, end, values, some, out[low:high]):
                return int64(-1)
        low = high
        done += counts[page]
    return int64(0 if low == len(rows) else -1)


@_compiled(int64, _Codes, _Flags, _Rows)
def matching(row_codes: Any, selected: Any, out: Any) -> Any:
    """Write the numbers of the rows whose code is selected to ``out``, which has one item more than there are rows.

    Returns how many there are.
    """
    return _matching(row_codes, selected, int64(0), out)


@_compiled(int64, _Codes, _Flags, _Rows, _Rows)
def matching_of(row_codes: Any, selected: Any, rows: Any, out: Any) -> Any:
    """Write those of ``rows`` whose code is selected to ``out``, which has one item more; returns how many there are."""
    count = uintp(0)
    for i in range(len(rows)):
        row = rows[uintp(i)]
        out[count] = row
        count += uintp(selected[uintp(row_codes[uintp(row)])])
    return int64(count)
