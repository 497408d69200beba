"""Parquet's levels and codes of dictionaries, unpacked or looked for.

Levels and dictionary codes are runs of one value and runs packed bit by bit, one behind the other (Encodings.md of
apache/parquet-format: RLE / bit-packing hybrid). Nothing here trusts its input: what would read behind ``end`` gives
-1, and the caller leaves the chunk to pyarrow, which says what is wrong with it.

Indexes are unsigned, as for signed ones numba asks each time whether they count from the end.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint8, uint16, uint64, uintp

from kquery_spark.kernels.loops.memory import load64

_ONE, _THREE, _SEVEN, _EIGHT, _WORD = uintp(1), uintp(3), uintp(7), uintp(8), uintp(64)
_LENGTH = uintp(4)  # bytes before the levels of a data page of version 1
_BAD = int64(1 << 32)  # larger than any code
_EIGHT_VALID = uint64(0x0101010101010101)
_NONE = uint8(2)  # what is known of a code that no value has
_HEADER_BITS = uintp(35)  # at most, seven a byte
_NULL = int64(-1)  # the position of a row that has no code
_LOADED = uintp(16)  # bytes that are loaded for eight codes, unless the array ends before

_Bytes = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_Flags, _Codes, _Rows = numba.uint8[::1], numba.uint16[::1], numba.int64[::1]


def _compiled(result: Any, *arguments: Any) -> Any:
    """Compiled for these types when the module is imported, or taken from the cache; runs without the interpreter's lock."""
    return numba.njit(result(*arguments), cache=True, nogil=True)


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
def flags_of(data: Any, at: Any, end: Any, out: Any) -> Any:
    """Fill ``out`` with levels of one bit as 0 or 1; gives how many are 1."""
    count = uintp(len(out))
    done = ones = uintp(0)
    while done < count:
        header, at = _run_header(data, at, end)
        run = header >> _ONE
        if run == uintp(0):
            return int64(-1)
        if header & _ONE:
            length = min(run * _EIGHT, count - done)
            if at + (length + _SEVEN) // _EIGHT > end:
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
    """One of the integers of so many bits that are packed from ``at`` on, read byte by byte."""
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
    """How many of the groups of eight codes, of so many bytes each, ``load64`` may read."""
    size = uintp(len(data))
    if at + groups * group + _LOADED <= size:
        return groups
    return (size - _LOADED - at) // group if at + _LOADED < size else uintp(0)


@numba.njit(inline="always")
def _repeated(data: Any, at: Any, bits: Any) -> Any:
    """The integer of so many bits, at most 16, in whole bytes."""
    code = uint64(data[at]) if bits > uint64(0) else uint64(0)
    if bits > uint64(8):
        code |= uint64(data[at + _ONE]) << uint64(8)
    return code


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
    while done < count:
        header, at = _run_header(data, at, end)
        run = header >> _ONE
        if run == uintp(0):
            return _BAD
        if header & _ONE:
            length = min(run * _EIGHT, count - done)
            if at + (length * group + _SEVEN) // _EIGHT > end:
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
    """The codes of the rows that are valid, ``null`` for the others; ``packed`` needs a code of any kind at its end."""
    at = row = uintp(0)
    count = uintp(len(out))
    while row < count:
        if row + _EIGHT <= count and load64(valid, row) == _EIGHT_VALID:  # most are, where NULLs are rare
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
    """Where a page's levels begin and where the width of its codes follows them; ``end`` for both where there is none.

    level_bytes: the bytes of the levels, -1 where the bytes before them say how many they are.
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
    """Where the width of a page's codes is, and how many of its rows are not NULL; -1 of them for another page.

    valid: filled for the rows, where there are levels.
    """
    first, body = _page(data, at, end, level_bytes)
    if body == end:
        return body, int64(-1)
    return body, int64(len(valid)) if body == first else flags_of(data, first, body, valid)


@numba.njit
def _page_codes(
    data: Any, body: Any, end: Any, present: Any, values: Any, valid: Any, scratch: Any, out: Any
) -> Any:
    """Fill ``out`` with the codes of a page's rows, ``present`` of them not NULL; False for another page.

    scratch: for the codes of these, and one more.
    """
    some = out if present == len(out) else scratch[:present]
    if present and _codes(data, body + _ONE, end, data[body], some) >= int64(values):
        return False
    if present < len(out):
        _spread(scratch, valid, values, out)
    return True


@numba.njit(inline="always")
def _longest(counts: Any) -> Any:
    """Rows of the longest page."""
    longest = 0
    for page in range(len(counts)):
        longest = max(longest, counts[page])
    return longest


@_compiled(int64, _Bytes, _Rows, _Rows, _Rows, _Rows, uint16, _Codes)
def codes(data: Any, starts: Any, ends: Any, counts: Any, levels: Any, values: Any, out: Any) -> Any:
    """Fill ``out`` with the codes of the pages of a chunk, ``values`` for NULL; gives how many are NULL, -1 for other pages.

    starts, ends: where each page's data begins and ends in ``data``. counts: rows of each. levels:
    bytes of the levels that come first, 0 for none, -1 where the bytes before them say so.
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
    """Writes the rows, from ``row`` on, whose code is selected; returns their number."""
    count = uintp(0)
    for i in range(len(row_codes)):
        out[count] = row + int64(i)
        count += uintp(selected[uintp(row_codes[uintp(i)])])
    return int64(count)


@numba.njit
def _where(data: Any, at: Any, end: Any, width: Any, count: Any, selected: Any, row: Any, out: Any) -> Any:
    """Writes the rows, from ``row`` on, whose codes of ``width`` bits are selected; gives their number, -1 for ``_NONE``."""
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
    """Writes the rows of a chunk whose value is selected; returns their number, -1 for other pages.

    Codes are not stored. selected: a flag for each value, the last one is NULL. out: one item more than rows. Others: as
    for ``codes``.
    """
    values = uint16(len(selected) - 1)
    states = np.empty(1 << 16, np.uint8)
    for code in range(len(states)):
        states[uintp(code)] = selected[uintp(code)] if uint64(code) < uint64(values) else _NONE
    longest = _longest(counts)
    valid, decoded = np.empty(longest, np.uint8), np.zeros(longest + 1, np.uint16)
    spread = np.empty(longest, np.uint16)
    done, hits = int64(0), int64(0)  # a literal would compile the callee twice
    for page in range(len(counts)):
        end, rows = uintp(ends[page]), counts[page]
        flags = valid[:rows]
        body, present = _levels(data, uintp(starts[page]), end, levels[page], flags)
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
    """How many bits of a word are 1."""
    word -= (word >> uint64(1)) & uint64(0x5555555555555555)
    word = (word & uint64(0x3333333333333333)) + ((word >> uint64(2)) & uint64(0x3333333333333333))
    word = (word + (word >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return uintp((word * uint64(0x0101010101010101)) >> uint64(56))


@numba.njit
def _ones_between(data: Any, at: Any, low: Any, high: Any) -> Any:
    """How many of the bits packed from ``at`` on are 1, from number ``low``, which is a multiple of eight, to ``high``."""
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
    """Where some rows of a page of ``count`` are among those that are not NULL, ``_NULL`` for NULL; False for other levels.

    Runs that hold none of the rows are only counted.
    """
    low = high = ones = counted = uintp(0)  # the run's rows; those not NULL before row ``counted`` of it
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
    """Fill ``out`` with the codes at rising positions, ``values`` at ``_NULL``; False for another page.

    Runs that hold none of the positions are skipped.
    """
    low = high = uintp(0)  # the positions of the run
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
    """Fill ``out`` with the codes of some rows, in rising order; 0, or -1 for other pages. The others: as for ``codes``.

    Pages and runs that hold none of the rows are mostly skipped, so this detects less corruption than ``codes``.
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
            if body > first and not _value_positions(data, first, body, uintp(counts[page]), some, some):
                return int64(-1)
            if not _codes_at(data, body, end, values, some, out[low:high]):
                return int64(-1)
        low = high
        done += counts[page]
    return int64(0 if low == len(rows) else -1)


@_compiled(int64, _Codes, _Flags, _Rows)
def matching(row_codes: Any, selected: Any, out: Any) -> Any:
    """Writes the numbers of the rows whose code is selected into ``out``, one item longer than rows; gives their number."""
    return _matching(row_codes, selected, int64(0), out)


@_compiled(int64, _Codes, _Flags, _Rows, _Rows)
def matching_of(row_codes: Any, selected: Any, rows: Any, out: Any) -> Any:
    """The same of some rows only."""
    count = uintp(0)
    for i in range(len(rows)):
        row = rows[uintp(i)]
        out[count] = row
        count += uintp(selected[uintp(row_codes[uintp(row)])])
    return int64(count)
