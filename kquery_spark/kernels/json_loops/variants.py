"""Encodes JSON strings as variants, byte for byte as Spark does.

The format is Parquet's "Variant Binary Encoding". The header of a container has the offsets of its values, whose sizes are
known only after they are written. So the values are written first, then moved, and the header is put in front of them. For
example, ``[1, 2]`` is written as 0C 01 0C 02 (two int8 values), and then moved behind the header 03 02 00 02 04: an array
with one-byte offsets, its size, and the offsets 0, 2 and 4. Doubles are left out, as "holes" that the caller fills.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint64

from kquery_spark.kernels.json_bytes import (
    COLON,
    COMMA,
    LOWER_F,
    LOWER_T,
    MINUS,
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    TO_CLOSING,
)
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
_MAX_NUMBER_BYTES, _MAX_NAME_BYTES = 1_000, 50_000  # Jackson's limits
_MAX_TEXT_BYTES = 1 << 21  # the variant of such a document certainly has less than 16 MiB, Spark's limit
_SMALL_SORT = 16
_Offsets = numba.types.Array(numba.int64, 1, "C", readonly=True)
_Flags = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_Numbers = numba.int64[::1]


# A copy of ``variant_loops.layout.compare_names``: a package's cache key covers no source files of other packages.
@numba.njit(int64(Bytes, int64, int64, int64, int64), cache=True, nogil=True)
def _order(names: Any, at: Any, end: Any, low: Any, high: Any) -> Any:
    """Compare two names in the order of Java strings, which is that of UTF-16 code units; return -1, 0 or 1."""
    for i in range(min(end - at, high - low)):
        one, other = names[at + i], names[low + i]
        if one != other:
            # UTF-8 and UTF-16 differ only here: characters above U+FFFF are surrogate pairs, which sort before U+E000
            if one >= 0xEE and other >= 0xEE and (one >= 0xF0) != (other >= 0xF0):
                return -1 if one >= 0xF0 else 1
            return -1 if one < other else 1
    if end - at == high - low:
        return 0
    return -1 if end - at < high - low else 1


@numba.njit(cache=True, nogil=True)
def _sink(ids: Any, offsets: Any, first: Any, root: Any, size: Any, names: Any, bounds: Any) -> None:
    """Sift an entry of a heap down to its position."""
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
    """Sort the fields of an object by name; return False if two fields have the same name.

    Small objects use insertion sort, others heap sort.
    """
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
    """Move the values of a container, which begin at ``start``, and put its header in front; return the header's size."""
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
    """Return the id of the name number ``count``: that of an equal earlier name if there is one, else ``count``.

    It searches a hash table (FNV-1a) with linear probing. A slot is valid only if its stamp is that of the current row, so
    that the table need not be cleared for each row.
    """
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
    """Read a name, store it as name number ``count``, and read the colon; return a status and the start of the value."""
    if at >= end or raw[at] != QUOTE:
        return NULL, at
    status, at, bounds[count + 1] = write_text(raw, at + 1, end, names, bounds[count])
    if status != VALUE:
        return status, at
    if bounds[count + 1] - bounds[count] > _MAX_NAME_BYTES:
        return ODD, at
    at = blank_end(raw, at, end)
    if at >= end or raw[at] != COLON:
        return NULL, at
    return VALUE, blank_end(raw, at + 1, end)


@numba.njit(inline="always")
def _write_number(raw: Any, at: Any, end: Any, out: Any, done: Any, holes: Any, hole: Any) -> Any:
    """Write the number at ``at``; return a status, its end, its kind, the end of the output, and the number of holes."""
    packed = number_end(raw, at, end)
    stop, kind = packed >> 1, int64(FLOAT if packed & 1 else INTEGER)
    if packed < 0:
        return int64(NULL), at, kind, done, hole
    if stop - at > _MAX_NUMBER_BYTES:
        return int64(ODD), at, kind, done, hole
    before = done
    done, has_hole = write_numeral(raw, at, stop, kind, out, done)
    if has_hole:
        holes[3 * hole], holes[3 * hole + 1], holes[3 * hole + 2] = before + 1, at, stop
        hole += 1
    return int64(VALUE), stop, kind, done, hole


@numba.njit(inline="always")
def _move_holes(holes: Any, hole: Any, start: Any, header: Any) -> Any:
    """Add the size of a container's header to the positions of the holes in its values, which have moved with them."""
    moved = hole - 1
    while moved >= 0 and holes[3 * moved] >= start:
        holes[3 * moved] += header
        moved -= 1


@numba.njit(cache=True, nogil=True)
def _parse(
    raw: Any, at: Any, end: Any, out: Any, done: Any, names: Any, bounds: Any, table: Any, stamps: Any, stamp: Any,
    ids: Any, offsets: Any, starts: Any, firsts: Any, kinds: Any, holes: Any, hole: Any,
) -> Any:  # fmt: skip
    """Write the variant of one document; return a status, its end, the number of names, and the number of holes.

    names, bounds: the names of the document and their bounds. table, stamps, stamp: the hash table of names. ids, offsets: a
    stack of the entries of open containers. starts, firsts, kinds: a stack of open containers: the start of their values,
    their first entry, and their opening bracket. A closing bracket is always its opening bracket plus 2 in ASCII.
    """
    count = depth = entries = int64(0)
    if end - at > _MAX_TEXT_BYTES:
        return ODD, done, count, hole
    at = blank_end(raw, at, end)
    while True:
        # a value begins at ``at``
        if at >= end:
            return NULL, done, count, hole
        byte = raw[at]
        kind, is_open, status = int64(WORD), False, int64(VALUE)
        if byte == QUOTE:
            kind = int64(STRING)
            status, at, done = write_string(raw, at + 1, end, out, done)
        elif byte == OPEN_OBJECT or byte == OPEN_ARRAY:
            if depth == _MAX_DEPTH:
                return ODD, done, count, hole
            kind = int64(STRING)
            starts[depth], firsts[depth], kinds[depth] = done, entries, byte
            depth += 1
            at = blank_end(raw, at + 1, end)
            is_open = at < end and raw[at] != byte + TO_CLOSING
        elif byte == MINUS or is_digit(byte):
            status, at, kind, done, hole = _write_number(raw, at, end, out, done, holes, hole)
        else:
            stop = word_end(raw, at, end)
            if stop < 0:
                return NULL, done, count, hole
            out[done] = (1 if byte == LOWER_T else 2 if byte == LOWER_F else 0) << 2
            at, done = stop, done + 1
        if status != VALUE:
            return status, done, count, hole
        if depth == 0:
            return root_status(raw, at, end, kind), done, count, hole
        # a value has ended, or an empty container was opened: close containers up to the next value
        while not is_open:
            if depth == 0:
                return VALUE, done, count, hole
            at = blank_end(raw, at, end)
            is_object = kinds[depth - 1] == OPEN_OBJECT
            if at < end and raw[at] == kinds[depth - 1] + TO_CLOSING:
                start, first = starts[depth - 1], firsts[depth - 1]
                if is_object and not _sort_fields(ids, offsets, first, entries - first, names, bounds):
                    return NULL, done, count, hole
                header = _write_header(out, start, done, is_object, ids, offsets, first, entries - first)
                _move_holes(holes, hole, start, header)
                done, entries = done + header, first
                at, depth = at + 1, depth - 1
                continue
            if at >= end or raw[at] != COMMA or entries == firsts[depth - 1]:
                return NULL, done, count, hole
            at = blank_end(raw, at + 1, end)
            is_open = True
        if at >= end:
            return NULL, done, count, hole
        ids[entries], offsets[entries] = 0, done - starts[depth - 1]
        if kinds[depth - 1] == OPEN_OBJECT:
            status, at = _read_name(raw, at, end, names, bounds, count)
            if status != VALUE:
                return status, done, count, hole
            ids[entries] = _name_id(names, bounds, count, table, stamps, stamp)
            if ids[entries] == count:
                count += 1
        entries += 1


@numba.njit(cache=True, nogil=True)
def _write_metadata(out: Any, done: Any, names: Any, bounds: Any, count: Any) -> Any:
    """Write the metadata of a variant, its dictionary of names; return its end."""
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
    is_valid: Any,
    values: Any,
    value_ends: Any,
    metas: Any,
    meta_ends: Any,
    holes: Any,
    status: Any,
) -> Any:
    """Write the variant of each document; return the number of holes.

    text_bounds: the offsets of the strings. is_valid: 0 for NULL. values: needs six bytes for each byte of the strings, and
    16 for each string; metas: two and 16. value_ends, meta_ends: the start of each value and metadata, and the end of the
    last one. holes: three items for each double: the position of its eight bytes in ``values``, and the start and end of
    its characters. status: VALUE, NULL for a malformed document, ODD for one that Python has to parse.
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
        if not is_valid[row]:
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
