"""Rebuilds variants from the columns of shredded ones.

A shredded value has up to two columns: ``value``, an encoded variant, and ``typed_value``, which has a primitive type or is
a struct of shredded fields or a list of shredded elements. For example, a column that is shredded by ``{"a": int}`` has::

    value: binary                        # the fields other than "a", or a value that is not an object
    typed_value: struct
        a: struct
            value: binary                # "a" if it is not an integer
            typed_value: int             # "a" if it is an integer

The loops cannot see Arrow arrays, so tables describe them: ``nodes`` has one row for each pair of columns, and ``fields``
one row for each field of a struct and for the elements of a list (``kernels/variants.py`` has their columns). The bytes of
all columns are in ``raw``, the numbers and offsets of all columns in ``words``, and the validity of values in ``flags``.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64

from kquery_spark.kernels.variant_loops.encoding import (
    DONE,
    FULL,
    ID,
    KEYS,
    NAME,
    NAME_END,
    ODD,
    OFFSET,
    STAMP,
    TOP,
    WRITTEN,
    Table,
    append_value,
    finish_container,
    id_of_name,
    next_name,
    write_bytes,
    write_metadata,
    write_number,
)
from kquery_spark.kernels.variant_loops.layout import (
    ARRAY,
    BINARY,
    DATE,
    DECIMAL4,
    DECIMAL8,
    DECIMAL16,
    DOUBLE,
    FALSE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    OBJECT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TRUE,
    VERSION,
    VERSION_BITS,
    Bytes,
    Numbers,
    Offsets,
    Raw,
    compare_names,
    container,
    id_bytes,
    unsigned,
)
from kquery_spark.kernels.variants import (
    FIELD_FLAGS,
    FIELD_NAME,
    FIELD_NAME_END,
    FIELD_NODE,
    FIELD_ORDER,
    IS_ARRAY,
    IS_BINARY,
    IS_BOOL,
    IS_DATE,
    IS_DECIMAL,
    IS_DOUBLE,
    IS_FLOAT,
    IS_LONG,
    IS_OBJECT,
    IS_STRING,
    IS_TIMESTAMP,
    TYPED_AT,
    TYPED_COUNT,
    TYPED_FIELDS,
    TYPED_FLAGS,
    TYPED_KIND,
    TYPED_SCALE,
    VALUE_AT,
    VALUE_FLAGS,
)

_MAX_BYTES = (1 << 24) - 1  # the largest value or metadata that every release of Spark accepts
_SCALAR_BYTES = 18  # the size of the largest number


@numba.njit(numba.boolean(Raw, int64, int64), cache=True, nogil=True)
def _is_present(flags: Any, at: Any, row: Any) -> Any:
    """Return True if a row has a value; ``at`` is -1 if the column does not exist."""
    return at >= 0 and flags[at + row] != 0


@numba.njit(int64(Raw, int64, int64, numba.boolean, Bytes, Numbers), cache=True, nogil=True)
def _write_bytes_value(raw: Any, at: Any, end: Any, is_string: Any, out: Any, state: Any) -> Any:
    """Write a string or binary value; return a status."""
    size, done = end - at, state[DONE]
    if done + 5 + size > len(out):
        return FULL
    if is_string and size < 64:
        out[done] = (size << 2) | 1
        done += 1
    else:
        out[done] = (STRING if is_string else BINARY) << 2
        done = write_number(out, done + 1, size, 4)
    state[DONE] = write_bytes(raw, at, end, out, done)
    return WRITTEN


@numba.njit(int64(int64, int64, int64, Bytes, int64), cache=True, nogil=True)
def _write_decimal(low: Any, high: Any, scale: Any, out: Any, done: Any) -> Any:
    """Write a decimal, given as two words and a scale, in the smallest type; return the end of the output."""
    is_short = high == low >> 63
    kind, size = DECIMAL16, 16
    if is_short and scale <= 9 and -1_000_000_000 < low < 1_000_000_000:
        kind, size = DECIMAL4, 4
    elif is_short and scale <= 18 and -1_000_000_000_000_000_000 < low < 1_000_000_000_000_000_000:
        kind, size = DECIMAL8, 8
    out[done], out[done + 1] = kind << 2, scale
    done = write_number(out, done + 2, low, min(size, 8))
    return write_number(out, done, high, 8) if size == 16 else done


@numba.njit(int64(int64, int64, Bytes, int64), cache=True, nogil=True)
def _write_fixed(kind: Any, number: Any, out: Any, done: Any) -> Any:
    """Write a value of up to eight bytes; return the end of the output."""
    if kind == IS_BOOL:
        out[done] = (TRUE if number else FALSE) << 2
        return done + 1
    if kind == IS_LONG:
        size = 1 if -128 <= number < 128 else 2 if -32768 <= number < 32768 else 8
        if size == 8 and -2147483648 <= number < 2147483648:
            size = 4
        out[done] = (INT8 if size == 1 else INT16 if size == 2 else INT32 if size == 4 else INT64) << 2
        return write_number(out, done + 1, number, size)
    info = TIMESTAMP if kind == IS_TIMESTAMP else TIMESTAMP_NTZ
    if kind == IS_DOUBLE:
        info = DOUBLE
    elif kind == IS_FLOAT:
        info = FLOAT
    elif kind == IS_DATE:
        info = DATE
    out[done] = info << 2
    return write_number(out, done + 1, number, 4 if kind == IS_FLOAT or kind == IS_DATE else 8)


@numba.njit(int64(Table, int64, int64, Raw, Offsets, Bytes, Numbers), cache=True, nogil=True)
def _write_typed(nodes: Any, node: Any, row: Any, raw: Any, words: Any, out: Any, state: Any) -> Any:
    """Write a typed scalar; return a status."""
    kind, at = nodes[node, TYPED_KIND], nodes[node, TYPED_AT]
    if kind == IS_STRING or kind == IS_BINARY:
        return _write_bytes_value(raw, words[at + row], words[at + row + 1], kind == IS_STRING, out, state)
    done = state[DONE]
    if done + _SCALAR_BYTES > len(out):
        return FULL
    if kind == IS_DECIMAL:
        low, high = words[at + 2 * row], words[at + 2 * row + 1]
        state[DONE] = _write_decimal(low, high, nodes[node, TYPED_SCALE], out, done)
    else:
        state[DONE] = _write_fixed(kind, words[at + row], out, done)
    return WRITTEN


@numba.njit(int64(Table, int64, int64, Raw, Table, int64, int64), cache=True, nogil=True)
def _merge(fields: Any, first: Any, count: Any, raw: Any, entries: Any, base: Any, extra: Any) -> Any:
    """Merge the entries of an object in the order of their names; return their number, or -1 if two have the same name.

    The entries of the ``count`` typed fields start at ``base``, with a negative id if the row lacks the field. The ``extra``
    entries from ``value`` follow and are sorted. The merged entries are written after both.
    """
    into = base + count + extra
    left, total = base + count, int64(0)
    for i in range(count):
        field = fields[first + i, FIELD_ORDER]
        name, name_end = fields[first + field, FIELD_NAME], fields[first + field, FIELD_NAME_END]
        while left < base + count + extra:
            order = compare_names(raw, entries[left, NAME], entries[left, NAME_END], raw, name, name_end)
            if order == 0:
                return -1
            if order > 0:
                break
            entries[into + total, ID], entries[into + total, OFFSET] = (
                entries[left, ID],
                entries[left, OFFSET],
            )
            left, total = left + 1, total + 1
        one = base + field
        if entries[one, ID] >= 0:
            entries[into + total, ID], entries[into + total, OFFSET] = entries[one, ID], entries[one, OFFSET]
            total += 1
    while left < base + count + extra:
        entries[into + total, ID], entries[into + total, OFFSET] = entries[left, ID], entries[left, OFFSET]
        left, total = left + 1, total + 1
    return total


@numba.njit(inline="always")
def _belongs_in_typed_column(kind: Any, basic_type: Any) -> Any:
    """True for an object or array whose typed column holds objects or arrays.

    Spark's readers disagree about files with such values outside of the typed column, so they are not supported.
    """
    return (kind == IS_OBJECT and basic_type == OBJECT) or (kind == IS_ARRAY and basic_type == ARRAY)


@numba.njit(cache=True, nogil=True)
def _append_other_fields(
    raw: Any, at: Any, end: Any, top: Any, extra: Any, offset_bytes: Any, offsets: Any, values: Any, start: Any, meta: Any,
    meta_end: Any, depth: Any, out: Any, state: Any, keys: Any, table: Any, stamps: Any, entries: Any,
) -> Any:  # fmt: skip
    """Append the ``extra`` fields of an object that have no typed column, with entries from ``top`` on; return a status."""
    low = high = int64(-1)
    width = id_bytes(raw[at]) if extra else int64(0)
    for i in range(extra):
        low, high = next_name(raw, offsets - (extra - i) * width, width, end, meta, meta_end, low, high)
        offset = unsigned(raw, offsets + i * offset_bytes, offset_bytes, end)
        if low < 0 or offset < 0:
            return ODD
        number, one = id_of_name(raw, low, high, state, keys, table, stamps), top + i
        if number < 0:
            return FULL
        entries[one, ID], entries[one, OFFSET] = number, state[DONE] - start
        entries[one, NAME], entries[one, NAME_END] = low, high
        status = append_value(
            raw, values + offset, end, meta, meta_end, depth + 1, out, state, keys, table, stamps, entries
        )
        if status != WRITTEN:
            return status
    return int64(WRITTEN)


@numba.njit(
    int64(
        *(Table, Table, Raw, Offsets, Raw, int64, int64, int64, int64, int64),
        *(Bytes, Numbers, Table, Numbers, Numbers, Table),
    ),
    cache=True,
    nogil=True,
)
def _rebuild(
    nodes: Any, fields: Any, raw: Any, words: Any, flags: Any, node: Any, row: Any, meta: Any, meta_end: Any, depth: Any,
    out: Any, state: Any, keys: Any, table: Any, stamps: Any, entries: Any,
) -> Any:  # fmt: skip
    """Write the value of a node for one row; return a status.

    Which columns have a value in the row decides what it is:

        value   typed_value
        yes     NULL          the encoded variant in ``value``
        NULL    yes           the typed value
        yes     yes           an object: typed fields from ``typed_value``, the others from ``value``
        NULL    NULL          a missing field, which the caller skips; otherwise ODD

    Children write their values directly behind each other into ``out``. Their offsets are collected in ``entries``, and
    ``finish_container`` puts the header in front of them.
    """
    kind, has_value, at, end = nodes[node, TYPED_KIND], False, int64(0), int64(0)
    if _is_present(flags, nodes[node, VALUE_FLAGS], row):
        has_value = True
        at, end = words[nodes[node, VALUE_AT] + row], words[nodes[node, VALUE_AT] + row + 1]
    if not _is_present(flags, nodes[node, TYPED_FLAGS], row):
        if not has_value or at >= end or _belongs_in_typed_column(kind, raw[at] & 3):
            return ODD
        return append_value(raw, at, end, meta, meta_end, depth, out, state, keys, table, stamps, entries)
    if has_value and (at >= end or kind != IS_OBJECT or raw[at] & 3 != OBJECT):
        return ODD
    if kind != IS_OBJECT and kind != IS_ARRAY:
        return _write_typed(nodes, node, row, raw, words, out, state)
    base, start, first = state[TOP], state[DONE], nodes[node, TYPED_FIELDS]
    child = fields[first, FIELD_NODE]
    # A typed array: rebuild each element.
    if kind == IS_ARRAY:
        low, high = words[nodes[node, TYPED_AT] + row], words[nodes[node, TYPED_AT] + row + 1]
        if base + high - low > len(entries):
            return FULL
        state[TOP] = base + high - low
        for i in range(low, high):
            entries[base + i - low, OFFSET] = state[DONE] - start
            status = _rebuild(
                nodes, fields, raw, words, flags, child, i, meta, meta_end, depth, out, state, keys, table, stamps, entries
            ) if _is_present(flags, fields[first, FIELD_FLAGS], i) else int64(ODD)  # fmt: skip
            if status != WRITTEN:
                return status
        state[TOP] = base
        return finish_container(out, state, start, False, entries, base, high - low)
    # A typed object: rebuild the typed fields, append the other fields from ``value``, and merge both by name. Its entries
    # need twice the room, since ``_merge`` writes the merged entries after the unmerged ones.
    count, extra = nodes[node, TYPED_COUNT], int64(0)
    offset_bytes = offsets = values = int64(0)
    if has_value:
        extra, offset_bytes, offsets, values = container(raw, at, end)
        if extra < 0 or values > end:
            return ODD
    if base + 2 * (count + extra) > len(entries):
        return FULL
    state[TOP] = base + 2 * (count + extra)
    for i in range(count):
        child = fields[first + i, FIELD_NODE]
        if not _is_present(flags, fields[first + i, FIELD_FLAGS], row):
            return ODD
        entries[base + i, ID] = -1
        if _is_present(flags, nodes[child, TYPED_FLAGS], row) or _is_present(
            flags, nodes[child, VALUE_FLAGS], row
        ):
            name, name_end = fields[first + i, FIELD_NAME], fields[first + i, FIELD_NAME_END]
            number = id_of_name(raw, name, name_end, state, keys, table, stamps)
            if number < 0:
                return FULL
            entries[base + i, ID], entries[base + i, OFFSET] = number, state[DONE] - start
            status = _rebuild(
                nodes, fields, raw, words, flags, child, row, meta, meta_end, depth, out, state, keys, table, stamps, entries
            )  # fmt: skip
            if status != WRITTEN:
                return status
    status = _append_other_fields(
        raw, at, end, base + count, extra, offset_bytes, offsets, values, start, meta, meta_end, depth, out, state, keys,
        table, stamps, entries,
    )  # fmt: skip
    if status != WRITTEN:
        return status
    total = _merge(fields, first, count, raw, entries, base, extra)
    if total < 0:
        return ODD
    state[TOP] = base
    return finish_container(out, state, start, True, entries, base + count + extra, total)


@numba.njit(
    int64(
        *(Table, Table, Raw, Offsets, Raw, Raw, int64, int64),
        *(Bytes, Numbers, Bytes, Numbers),
    ),
    cache=True,
    nogil=True,
)
def rebuilt_variants(
    nodes: Any, fields: Any, raw: Any, words: Any, flags: Any, is_valid: Any, meta_at: Any, room: Any, values: Any,
    value_ends: Any, metas: Any, meta_ends: Any,
) -> Any:  # fmt: skip
    """Write the values and metadata of the variants of all rows that are not NULL; return a status.

    The status is WRITTEN, FULL if an output array is too small, or ODD if a variant is malformed or unusual. The first node
    describes the whole variant. is_valid: 0 for NULL. meta_at: the start of the metadata offsets in ``words``. room: the
    number of entries that fit on the stack, a power of two. value_ends, meta_ends: the start of each value and metadata.
    """
    keys, entries = np.empty((room >> 1, 2), np.int64), np.empty((room, 4), np.int64)
    table, stamps = np.empty(room, np.int64), np.zeros(room, np.int64)
    state = np.zeros(4, np.int64)
    meta_done = int64(0)
    for row in range(len(is_valid)):
        value_ends[row], meta_ends[row] = state[DONE], meta_done
        if not is_valid[row]:
            continue
        meta, meta_end = words[meta_at + row], words[meta_at + row + 1]
        if meta >= meta_end or raw[meta] & VERSION_BITS != VERSION:
            return ODD
        start = state[DONE]
        state[KEYS] = state[TOP] = 0
        state[STAMP] = row + 1
        status = _rebuild(
            nodes, fields, raw, words, flags, int64(0), row, meta, meta_end, int64(0), values, state, keys, table, stamps,
            entries,
        )  # fmt: skip
        if status != WRITTEN:
            return status
        meta_stop = write_metadata(raw, state, keys, metas, meta_done)
        if meta_stop < 0:
            return FULL
        if max(state[DONE] - start, meta_stop - meta_done) > _MAX_BYTES:
            return ODD
        meta_done = meta_stop
    value_ends[len(is_valid)], meta_ends[len(is_valid)] = state[DONE], meta_done
    return WRITTEN
