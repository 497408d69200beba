"""Writes values of variants byte by byte, as Spark's ``VariantBuilder`` does.

The functions share these arrays:

- ``state`` has the numbers that change while a row is written: the end of the output, the number of names, the top of the
  stack ``entries``, and the stamp of the row;
- ``keys`` has the start and end of the name of each id; ``table`` and ``stamps`` are a hash table from names to ids, in
  which a slot is valid only if its stamp is that of the row, so that it need not be cleared for each row;
- ``entries`` is a stack of the values of open containers: an id, the offset of the value in its container, and the start and
  end of its name.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import int64, uint64

from kquery_spark.kernels.variant_loops.checks import MAX_DEPTH
from kquery_spark.kernels.variant_loops.layout import (
    MALFORMED,
    OBJECT,
    PRIMITIVE,
    SHORT_STRING,
    Bytes,
    Numbers,
    Raw,
    compare_names,
    container,
    id_bytes,
    name_of,
    unsigned,
    value_size,
)

DONE, KEYS, TOP, STAMP = 0, 1, 2, 3  # positions in ``state``
ID, OFFSET, NAME, NAME_END = 0, 1, 2, 3  # columns of ``entries``
WRITTEN, ODD, FULL = (
    1,
    2,
    3,
)  # statuses; ODD: the variant is malformed or unusual, FULL: an output array is too small
Table = numba.int64[:, ::1]


@numba.njit(int64(int64), cache=True, nogil=True)
def _bytes_of(number: Any) -> Any:
    return 1 if number < 1 << 8 else 2 if number < 1 << 16 else 3


@numba.njit(int64(Bytes, int64, int64, int64), cache=True, nogil=True)
def write_number(out: Any, done: Any, number: Any, size: Any) -> Any:
    """Write the ``size`` lowest bytes of a number; return the end of the output."""
    for i in range(size):
        out[done + i] = (number >> (8 * i)) & 0xFF
    return done + size


@numba.njit(int64(Raw, int64, int64, Bytes, int64), cache=True, nogil=True)
def write_bytes(raw: Any, at: Any, end: Any, out: Any, done: Any) -> Any:
    """Copy bytes; return the end of the output."""
    for i in range(end - at):
        out[done + i] = raw[at + i]
    return done + end - at


@numba.njit(int64(Raw, int64, int64, Numbers, Table, Numbers, Numbers), cache=True, nogil=True)
def id_of_name(raw: Any, at: Any, end: Any, state: Any, keys: Any, table: Any, stamps: Any) -> Any:
    """Return the id of a name in this row, a new one if the name is new; -1 if the buffer is full."""
    code = uint64(14695981039346656037)
    for i in range(at, end):
        code = (code ^ uint64(raw[i])) * uint64(1099511628211)
    mask = len(table) - 1
    place = int64((code ^ (code >> uint64(29))) & uint64(mask))
    while stamps[place] == state[STAMP]:
        known = table[place]
        if compare_names(raw, keys[known, 0], keys[known, 1], raw, at, end) == 0:
            return known
        place = (place + 1) & mask
    count = state[KEYS]
    if count == len(keys):
        return -1
    stamps[place], table[place] = state[STAMP], count
    keys[count, 0], keys[count, 1] = at, end
    state[KEYS] = count + 1
    return count


@numba.njit(int64(Bytes, Numbers, int64, numba.boolean, Table, int64, int64), cache=True, nogil=True)
def finish_container(
    out: Any, state: Any, start: Any, is_object: Any, entries: Any, first: Any, size: Any
) -> Any:
    """Move the values of a container, which begin at ``start``, and put its header in front of them; return a status.

    first, size: the entries of its values; those of an object are sorted by name.
    """
    done = state[DONE]
    width = _bytes_of(done - start)
    size_bytes = 4 if size > 255 else 1
    highest = int64(0)
    if is_object:
        for i in range(first, first + size):
            highest = max(highest, entries[i, ID])
    number_bytes = _bytes_of(highest)
    header = 1 + size_bytes + (size * number_bytes if is_object else 0) + (size + 1) * width
    if done + header > len(out):
        return FULL
    for i in range(done - 1, start - 1, -1):
        out[i + header] = out[i]
    is_large = 1 if size > 255 else 0
    if is_object:
        out[start] = (is_large << 6) | ((number_bytes - 1) << 4) | ((width - 1) << 2) | 2
    else:
        out[start] = (is_large << 4) | ((width - 1) << 2) | 3
    at = write_number(out, start + 1, size, size_bytes)
    if is_object:
        for i in range(first, first + size):
            at = write_number(out, at, entries[i, ID], number_bytes)
    for i in range(first, first + size):
        at = write_number(out, at, entries[i, OFFSET], width)
    write_number(out, at, done - start, width)
    state[DONE] = done + header
    return WRITTEN


@numba.njit(
    numba.types.UniTuple(int64, 2)(Raw, int64, int64, int64, int64, int64, int64, int64),
    cache=True,
    nogil=True,
)
def next_name(
    raw: Any, at: Any, width: Any, end: Any, meta: Any, meta_end: Any, before: Any, before_end: Any
) -> Any:
    """Return the start and end of the name of the id at ``at``; MALFORMED if it does not sort after the previous name.

    before, before_end: the start and end of the previous name; -1 if there is none.
    """
    low, high = name_of(raw, meta, meta_end, unsigned(raw, at, width, end))
    if low >= 0 and before >= 0 and compare_names(raw, before, before_end, raw, low, high) >= 0:
        return int64(MALFORMED), int64(0)
    return low, high


@numba.njit(
    int64(Raw, int64, int64, int64, int64, int64, Bytes, Numbers, Table, Numbers, Numbers, Table),
    cache=True,
    nogil=True,
)
def append_value(
    raw: Any, at: Any, end: Any, meta: Any, meta_end: Any, depth: Any, out: Any, state: Any, keys: Any, table: Any,
    stamps: Any, entries: Any,
) -> Any:  # fmt: skip
    """Copy a value, and replace the ids of its names by those of this row; return a status."""
    if at >= end:
        return ODD
    basic = raw[at] & 3
    if basic == PRIMITIVE or basic == SHORT_STRING:
        size = value_size(raw, at, end)
        if size < 0 or at + size > end:
            return ODD
        if state[DONE] + size > len(out):
            return FULL
        state[DONE] = write_bytes(raw, at, at + size, out, state[DONE])
        return WRITTEN
    size, offset_bytes, offsets, values = container(raw, at, end)
    if size < 0 or values > end or depth == MAX_DEPTH:
        return ODD
    base, start = state[TOP], state[DONE]
    if base + size > len(entries):
        return FULL
    state[TOP] = base + size
    width = id_bytes(raw[at]) if basic == OBJECT else int64(0)
    low, high = int64(-1), int64(-1)
    for i in range(size):
        if width:
            low, high = next_name(raw, offsets - (size - i) * width, width, end, meta, meta_end, low, high)
            if low < 0:
                return ODD
            entries[base + i, ID] = id_of_name(raw, low, high, state, keys, table, stamps)
            if entries[base + i, ID] < 0:
                return FULL
        entries[base + i, OFFSET] = state[DONE] - start
        offset = unsigned(raw, offsets + i * offset_bytes, offset_bytes, end)
        if offset < 0:
            return ODD
        status = append_value(
            raw, values + offset, end, meta, meta_end, depth + 1, out, state, keys, table, stamps, entries
        )
        if status != WRITTEN:
            return status
    state[TOP] = base
    return finish_container(out, state, start, width > 0, entries, base, size)


@numba.njit(int64(Raw, Numbers, Table, Bytes, int64), cache=True, nogil=True)
def write_metadata(raw: Any, state: Any, keys: Any, out: Any, done: Any) -> Any:
    """Write the metadata of the row's names; return its end, or -1 if the buffer is full."""
    count, size = state[KEYS], int64(0)
    for i in range(count):
        size += keys[i, 1] - keys[i, 0]
    width = _bytes_of(max(size, count))
    if done + 1 + (count + 2) * width + size > len(out):
        return -1
    out[done] = 1 | ((width - 1) << 6)
    done = write_number(out, done + 1, count, width)
    offset = int64(0)
    for i in range(count):
        done = write_number(out, done, offset, width)
        offset += keys[i, 1] - keys[i, 0]
    done = write_number(out, done, offset, width)
    for i in range(count):
        done = write_bytes(raw, keys[i, 0], keys[i, 1], out, done)
    return done
