"""JSON strings as variants, byte for byte as Spark encodes them.

The format is Parquet's "Variant Binary Encoding": a container's header has the offsets of its values, and so is put in
front of them when they are written. Doubles are left out, as "holes" that the caller fills.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint64

from kquery_spark.kernels.json_loops.scan import NULL, ODD, VALUE, root_status
from kquery_spark.kernels.json_loops.tokens import (
    FLOAT,
    INTEGER,
    STRING,
    WORD,
    Text,
    blank_end,
    is_digit,
    number_end,
    word_end,
)
from kquery_spark.kernels.json_loops.variant_scalars import (
    write_number,
    write_numeral,
    write_string,
    write_text,
)
from kquery_spark.kernels.json_loops.write import Bytes

_MAX_DEPTH = 500
_MAX_NUMBER_BYTES, _MAX_NAME_BYTES = 1_000, 50_000  # that Jackson reads
_MAX_TEXT_BYTES = 1 << 21  # whose variant is sure to have less than 16 MiB
_SMALL_SORT = 16
_Offsets = numba.types.Array(numba.int64, 1, "C", readonly=True)
_Flags = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_Numbers = numba.int64[::1]


# As ``variant_loops.layout.compared``: what is compiled of a package is kept by the text of that package alone.
@numba.njit(int64(Bytes, int64, int64, int64, int64), cache=True, nogil=True)
def _order(names: Any, at: Any, end: Any, low: Any, high: Any) -> Any:
    """-1, 0 or 1 by the order of Java's strings, which is that of UTF-16."""
    for i in range(min(end - at, high - low)):
        one, other = names[at + i], names[low + i]
        if one != other:
            # characters past 16 bits are pairs of units below U+E000
            if one >= 0xEE and other >= 0xEE and (one >= 0xF0) != (other >= 0xF0):
                return -1 if one >= 0xF0 else 1
            return -1 if one < other else 1
    if end - at == high - low:
        return 0
    return -1 if end - at < high - low else 1


@numba.njit(cache=True, nogil=True)
def _sink(ids: Any, offsets: Any, first: Any, root: Any, size: Any, names: Any, bounds: Any) -> None:
    """Let an entry of a heap sink to its place."""
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        one, other = ids[first + child], ids[first + min(child + 1, size - 1)]
        if (
            child + 1 < size
            and _order(names, bounds[one], bounds[one + 1], bounds[other], bounds[other + 1]) < 0
        ):
            child += 1
        one, other = ids[first + root], ids[first + child]
        if _order(names, bounds[one], bounds[one + 1], bounds[other], bounds[other + 1]) >= 0:
            return
        _swap(ids, offsets, first + root, first + child)
        root = child


@numba.njit(inline="always")
def _swap(ids: Any, offsets: Any, one: Any, other: Any) -> None:
    ids[one], ids[other] = ids[other], ids[one]
    offsets[one], offsets[other] = offsets[other], offsets[one]


@numba.njit(cache=True, nogil=True)
def _sort_fields(ids: Any, offsets: Any, first: Any, size: Any, names: Any, bounds: Any) -> Any:
    """Sort the fields of an object by their names; whether no two have the same."""
    if size <= _SMALL_SORT:
        for i in range(first + 1, first + size):
            for j in range(i, first, -1):
                one, other = ids[j - 1], ids[j]
                if _order(names, bounds[one], bounds[one + 1], bounds[other], bounds[other + 1]) <= 0:
                    break
                _swap(ids, offsets, j - 1, j)
    else:
        for root in range(size // 2 - 1, -1, -1):
            _sink(ids, offsets, first, root, size, names, bounds)
        for last in range(size - 1, 0, -1):
            _swap(ids, offsets, first, first + last)
            _sink(ids, offsets, first, 0, last, names, bounds)
    for i in range(first + 1, first + size):  # noqa: SIM110  numba has no generators here
        if ids[i] == ids[i - 1]:
            return False
    return True


@numba.njit(inline="always")
def _bytes_of(number: Any) -> Any:
    return 1 if number < 1 << 8 else 2 if number < 1 << 16 else 3


@numba.njit(cache=True, nogil=True)
def _write_header(
    out: Any, start: Any, done: Any, is_object: Any, ids: Any, offsets: Any, first: Any, size: Any
) -> Any:
    """Put the header of a container in front of its values, which begin at ``start``: where these end then."""
    width = _bytes_of(done - start)
    size_bytes = 4 if size > 255 else 1
    highest = int64(0)
    if is_object:
        for i in range(first, first + size):
            highest = max(highest, ids[i])
    id_bytes = _bytes_of(highest)
    header = 1 + size_bytes + (size * id_bytes if is_object else 0) + (size + 1) * width
    for i in range(done - 1, start - 1, -1):
        out[i + header] = out[i]
    is_large = 1 if size > 255 else 0
    if is_object:
        out[start] = (is_large << 6) | ((id_bytes - 1) << 4) | ((width - 1) << 2) | 2
    else:
        out[start] = (is_large << 4) | ((width - 1) << 2) | 3
    at = write_number(out, start + 1, size, size_bytes)
    if is_object:
        for i in range(first, first + size):
            at = write_number(out, at, ids[i], id_bytes)
    for i in range(first, first + size):
        at = write_number(out, at, offsets[i], width)
    write_number(out, at, done - start, width)
    return header


@numba.njit(cache=True, nogil=True)
def _name_id(names: Any, bounds: Any, count: Any, table: Any, stamps: Any, stamp: Any) -> Any:
    """The id of the name behind ``count`` others, which is its own unless one of them is the same."""
    low, high = bounds[count], bounds[count + 1]
    code = uint64(14695981039346656037)
    for i in range(low, high):
        code = (code ^ uint64(names[i])) * uint64(1099511628211)
    mask = len(table) - 1
    place = int64((code ^ (code >> uint64(29))) & uint64(mask))
    while stamps[place] == stamp:
        known = table[place]
        if _order(names, bounds[known], bounds[known + 1], low, high) == 0:
            return known
        place = (place + 1) & mask
    stamps[place], table[place] = stamp, count
    return count


@numba.njit(cache=True, nogil=True)
def _read_name(raw: Any, at: Any, end: Any, names: Any, bounds: Any, count: Any) -> Any:
    """Read a name, to be the next one, and the colon behind it: a status, and where the value begins."""
    if at >= end or raw[at] != 34:
        return NULL, at
    status, at, bounds[count + 1] = write_text(raw, at + 1, end, names, bounds[count])
    if status != VALUE:
        return status, at
    if bounds[count + 1] - bounds[count] > _MAX_NAME_BYTES:
        return ODD, at
    at = blank_end(raw, at, end)
    if at >= end or raw[at] != 58:
        return NULL, at
    return VALUE, blank_end(raw, at + 1, end)


@numba.njit(cache=True, nogil=True)
def _parse(
    raw: Any, at: Any, end: Any, out: Any, done: Any, names: Any, bounds: Any, table: Any, stamps: Any, stamp: Any,
    ids: Any, offsets: Any, starts: Any, firsts: Any, kinds: Any, holes: Any, hole: Any,
) -> Any:  # fmt: skip
    """Write the variant of one text: a status, where it ends, the number of names, and the number of holes."""
    count = depth = entries = int64(0)
    if end - at > _MAX_TEXT_BYTES:
        return ODD, done, count, hole
    at = blank_end(raw, at, end)
    while True:
        # a value begins at ``at``
        if at >= end:
            return NULL, done, count, hole
        byte = raw[at]
        kind, is_open = int64(WORD), False
        if byte == 34:
            kind = int64(STRING)
            status, at, done = write_string(raw, at + 1, end, out, done)
            if status != VALUE:
                return status, done, count, hole
        elif byte == 123 or byte == 91:
            if depth == _MAX_DEPTH:
                return ODD, done, count, hole
            kind = int64(STRING)
            starts[depth], firsts[depth], kinds[depth] = done, entries, byte
            depth += 1
            at = blank_end(raw, at + 1, end)
            is_open = at < end and raw[at] != byte + 2
        elif byte == 45 or is_digit(byte):
            packed = number_end(raw, at, end)
            if packed < 0:
                return NULL, done, count, hole
            stop, kind = packed >> 1, int64(FLOAT if packed & 1 else INTEGER)
            if stop - at > _MAX_NUMBER_BYTES:
                return ODD, done, count, hole
            before = done
            done, has_hole = write_numeral(raw, at, stop, kind, out, done)
            if has_hole:
                holes[3 * hole], holes[3 * hole + 1], holes[3 * hole + 2] = before + 1, at, stop
                hole += 1
            at = stop
        else:
            stop = word_end(raw, at, end)
            if stop < 0:
                return NULL, done, count, hole
            out[done] = (1 if byte == 116 else 2 if byte == 102 else 0) << 2
            at, done = stop, done + 1
        if depth == 0:
            return root_status(raw, at, end, kind), done, count, hole
        # behind a value, or behind the bracket of a container: close containers up to the next value
        while not is_open:
            if depth == 0:
                return VALUE, done, count, hole
            at = blank_end(raw, at, end)
            if at >= end:
                return NULL, done, count, hole
            is_object = kinds[depth - 1] == 123
            if raw[at] == kinds[depth - 1] + 2:
                start, first = starts[depth - 1], firsts[depth - 1]
                if is_object and not _sort_fields(ids, offsets, first, entries - first, names, bounds):
                    return NULL, done, count, hole
                header = _write_header(out, start, done, is_object, ids, offsets, first, entries - first)
                moved = hole - 1
                while moved >= 0 and holes[3 * moved] >= start:
                    holes[3 * moved] += header
                    moved -= 1
                done, entries = done + header, first
                at, depth = at + 1, depth - 1
                continue
            if raw[at] != 44 or entries == firsts[depth - 1]:
                return NULL, done, count, hole
            at = blank_end(raw, at + 1, end)
            is_open = True
        if at >= end:
            return NULL, done, count, hole
        ids[entries], offsets[entries] = 0, done - starts[depth - 1]
        if kinds[depth - 1] == 123:
            status, at = _read_name(raw, at, end, names, bounds, count)
            if status != VALUE:
                return status, done, count, hole
            ids[entries] = _name_id(names, bounds, count, table, stamps, stamp)
            if ids[entries] == count:
                count += 1
        entries += 1


@numba.njit(cache=True, nogil=True)
def _write_metadata(out: Any, done: Any, names: Any, bounds: Any, count: Any) -> Any:
    """Write the metadata of some names; where it ends."""
    size = bounds[count]
    width = _bytes_of(max(size, count))
    out[done] = 1 | ((width - 1) << 6)
    done = write_number(out, done + 1, count, width)
    for i in range(count + 1):
        done = write_number(out, done, bounds[i], width)
    for i in range(size):
        out[done + i] = names[i]
    return done + size


@numba.njit(
    int64(Text, _Offsets, _Flags, Bytes, _Numbers, Bytes, _Numbers, _Numbers, Bytes), cache=True, nogil=True
)
def json_variants(
    raw: Any,
    text_bounds: Any,
    is_there: Any,
    values: Any,
    value_ends: Any,
    metas: Any,
    meta_ends: Any,
    holes: Any,
    status: Any,
) -> Any:
    """Write the variant of each text; the number of holes.

    values: six bytes for each of the strings' and 16 for each text; metas: two for each and 16. value_ends, meta_ends: where
    each begins, and the end of the last one. holes: for each double that is left out where its eight bytes are in
    ``values``, and where its text begins and ends. status: VALUE, NULL for a text that is no JSON, ODD for one that is not
    looked into.
    """
    longest = int64(0)
    for row in range(len(status)):
        longest = max(longest, text_bounds[row + 1] - text_bounds[row])
    longest = min(longest, int64(_MAX_TEXT_BYTES))
    names, bounds = np.empty(longest + 1, np.uint8), np.zeros(longest + 2, np.int64)
    capacity = 16
    while capacity < longest:
        capacity *= 2
    table, stamps = np.empty(capacity, np.int64), np.zeros(capacity, np.int64)
    ids, offsets = np.empty(longest + 2, np.int64), np.empty(longest + 2, np.int64)
    starts, firsts = np.empty(_MAX_DEPTH, np.int64), np.empty(_MAX_DEPTH, np.int64)
    kinds = np.empty(_MAX_DEPTH, np.uint8)
    done = meta_done = hole = int64(0)
    for row in range(len(status)):
        value_ends[row], meta_ends[row], status[row] = done, meta_done, NULL
        if not is_there[row]:
            continue
        state, stop, count, hole_stop = _parse(
            raw, text_bounds[row], text_bounds[row + 1], values, done, names, bounds, table, stamps, row + 1,
            ids, offsets, starts, firsts, kinds, holes, hole,
        )  # fmt: skip
        status[row] = state
        if state == VALUE:
            done, hole = stop, hole_stop
            meta_done = _write_metadata(metas, meta_done, names, bounds, count)
    value_ends[len(status)], meta_ends[len(status)] = done, meta_done
    return hole
