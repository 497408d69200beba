"""Finds the value at a path of each variant, and decodes scalars."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint8, uint64

from kquery_spark.kernels.variant_loops.checks import MAX_DEPTH, is_sound
from kquery_spark.kernels.variant_loops.layout import (
    ABSENT,
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
    INT64,
    MALFORMED,
    NULL,
    OBJECT,
    PRIMITIVE,
    SHORT_STRING,
    STRING,
    TIMESTAMP,
    TRUE,
    UUID,
    VERSION,
    VERSION_BITS,
    Bytes,
    Numbers,
    Offsets,
    Raw,
    compare_names,
    container,
    id_bytes,
    name_of,
    primitive_size,
    signed,
    unsigned,
    value_size,
)
from kquery_spark.kernels.variants import (
    IS_ABSENT,
    IS_ARRAY,
    IS_BINARY,
    IS_BOOL,
    IS_DATE,
    IS_DECIMAL,
    IS_DOUBLE,
    IS_FLOAT,
    IS_LONG,
    IS_MALFORMED,
    IS_NULL,
    IS_OBJECT,
    IS_STRING,
    IS_TIMESTAMP,
    IS_TIMESTAMP_NTZ,
    IS_UNKNOWN,
    IS_UUID,
)

_BINARY_SEARCH_FIELDS = 32  # from this number of fields on, Spark uses binary search
# 10 ** 38 as two 64-bit words
_HIGH_LIMIT, _LOW_LIMIT = 0x4B3B4CA85A86C47A, 0x098A224000000000


@numba.njit(int64(Raw, int64, int64, Raw, int64, int64, Raw, int64, int64), cache=True, nogil=True)
def _field(
    values: Any, at: Any, end: Any, metas: Any, meta: Any, meta_end: Any, names: Any, low: Any, high: Any
) -> Any:
    """Return the position of the field with a name in an object; ABSENT if there is none.

    Fields are sorted by name. Like Spark, it searches small objects linearly and others by binary search, so that both
    return the same field of an object whose fields are not sorted.
    """
    size, offset_bytes, offsets, start = container(values, at, end)
    if size < 0:
        return MALFORMED
    width = id_bytes(values[at])
    ids = offsets - size * width
    first, last = int64(0), size - 1
    is_sorted = size >= _BINARY_SEARCH_FIELDS
    while first <= last:
        middle = (first + last) >> 1 if is_sorted else first
        number = unsigned(values, ids + middle * width, width, end)
        if number < 0:
            return MALFORMED
        begin, stop = name_of(metas, meta, meta_end, number)
        if begin < 0:
            return MALFORMED
        order = compare_names(metas, begin, stop, names, low, high)
        if order == 0:
            offset = unsigned(values, offsets + middle * offset_bytes, offset_bytes, end)
            return MALFORMED if offset < 0 else start + offset
        if order < 0 or not is_sorted:
            first = middle + 1
        else:
            last = middle - 1
    return ABSENT


@numba.njit(int64(Raw, int64, int64, int64), cache=True, nogil=True)
def _element(values: Any, at: Any, end: Any, index: Any) -> Any:
    """Return the position of an element of an array; ABSENT if there is none."""
    size, offset_bytes, offsets, start = container(values, at, end)
    if size < 0:
        return MALFORMED
    if index >= size:
        return ABSENT
    offset = unsigned(values, offsets + index * offset_bytes, offset_bytes, end)
    return MALFORMED if offset < 0 else start + offset


@numba.njit(cache=True, nogil=True)
def _place(
    values: Any,
    at: Any,
    end: Any,
    metas: Any,
    meta: Any,
    meta_end: Any,
    names: Any,
    bounds: Any,
    indexes: Any,
) -> Any:
    """Return the position of the value at the path, or ABSENT or MALFORMED."""
    if meta >= meta_end or metas[meta] & VERSION_BITS != VERSION:
        return int64(MALFORMED)
    for step in range(len(indexes)):
        if at >= end:
            return int64(MALFORMED)
        basic = values[at] & 3
        if indexes[step] < 0:
            if basic != OBJECT:
                return _absent_of(values, at)
            at = _field(values, at, end, metas, meta, meta_end, names, bounds[step], bounds[step + 1])
        else:
            if basic != ARRAY:
                return _absent_of(values, at)
            at = _element(values, at, end, indexes[step])
        if at < 0:
            return at
    return at if at < end else int64(MALFORMED)


@numba.njit(cache=True, nogil=True)
def _absent_of(values: Any, at: Any) -> Any:
    """Return ABSENT for a value that is not of the kind that a step needs, but MALFORMED if its type is unknown."""
    info = int64(values[at]) >> 2
    if values[at] & 3 != PRIMITIVE or info == BINARY or info == STRING:
        return int64(ABSENT)
    return int64(ABSENT if primitive_size(info) > 0 else MALFORMED)


@numba.njit(cache=True, nogil=True)
def decimal_of(values: Any, at: Any, end: Any, info: Any) -> Any:
    """Read a decimal; return whether it is well-formed, its scale, and its unscaled value as two words (low, high)."""
    size = 4 if info == DECIMAL4 else 8 if info == DECIMAL8 else 16
    digits = 9 if info == DECIMAL4 else 18 if info == DECIMAL8 else 38
    if at + 2 + size > end:
        return False, int64(0), int64(0), int64(0)
    scale = int64(values[at + 1])
    low = signed(values, at + 2, min(size, 8))
    if size < 16:
        limit = int64(1_000_000_000 if size == 4 else 1_000_000_000_000_000_000)
        return scale <= digits and -limit < low < limit, scale, low, int64(-1 if low < 0 else 0)
    high = signed(values, at + 10, 8)
    # Compare the absolute value with 10 ** 38. The 128-bit negation is ~x + 1; it carries into the upper word if the lower
    # word becomes 0.
    above, below = uint64(high), uint64(low)
    if high < 0:
        below = ~below + uint64(1)
        above = ~above + uint64(1 if below == 0 else 0)
    is_small = above < uint64(_HIGH_LIMIT) or (above == uint64(_HIGH_LIMIT) and below < uint64(_LOW_LIMIT))
    return is_small and scale <= digits, scale, low, high


@numba.njit(cache=True, nogil=True)
def _scalar(values: Any, at: Any, end: Any) -> Any:
    """Decode the value at ``at``; return its kind, a number as two words, and the start and size of its bytes.

    A decimal returns its scale instead of the size.
    """
    basic, info = values[at] & 3, int64(values[at]) >> 2
    low = high = size = int64(0)
    start = at + 1
    kind = IS_UNKNOWN
    if basic == OBJECT:
        kind, start = IS_OBJECT, at
    elif basic == ARRAY:
        kind, start = IS_ARRAY, at
    elif basic == SHORT_STRING:
        kind, size = IS_STRING, info
    elif info == NULL:
        kind = IS_NULL
    elif info == TRUE or info == FALSE:
        kind, low = IS_BOOL, int64(1 if info == TRUE else 0)
    elif info == STRING or info == BINARY:
        kind, size, start = (
            IS_STRING if info == STRING else IS_BINARY,
            unsigned(values, at + 1, 4, end),
            at + 5,
        )
    elif info == DECIMAL4 or info == DECIMAL8 or info == DECIMAL16:
        is_sound, size, low, high = decimal_of(values, at, end, info)
        return (IS_DECIMAL if is_sound else IS_MALFORMED), low, high, start, size
    elif info == UUID:
        kind, size = IS_UUID, int64(16)
    elif primitive_size(info) > 0:
        width = primitive_size(info) - 1
        if at + 1 + width > end:
            return IS_MALFORMED, low, high, start, size
        low = signed(values, at + 1, width)
        if info >= INT8 and info <= INT64:
            kind = IS_LONG
        elif info == DOUBLE:
            kind = IS_DOUBLE
        elif info == FLOAT:
            kind = IS_FLOAT
        elif info == DATE:
            kind = IS_DATE
        else:
            kind = IS_TIMESTAMP if info == TIMESTAMP else IS_TIMESTAMP_NTZ
    if size < 0 or start + size > end:
        kind = IS_MALFORMED
    return kind, low, high, start, size


@numba.njit(
    numba.void(
        *(Raw, Offsets, Raw, Offsets, Raw, Raw, Offsets, Offsets, numba.boolean, numba.boolean),
        *(Bytes, Numbers, Numbers, Numbers, Numbers),
    ),
    cache=True,
    nogil=True,
)
def variant_values(
    values: Any,
    value_bounds: Any,
    metas: Any,
    meta_bounds: Any,
    is_valid: Any,
    names: Any,
    bounds: Any,
    indexes: Any,
    whole: Any,
    copied: Any,
    kinds: Any,
    lows: Any,
    highs: Any,
    starts: Any,
    sizes: Any,
) -> None:
    """Decode the value at a path of each variant.

    names, bounds, indexes: the steps of the path. Step i is the name from ``bounds[i]`` to ``bounds[i + 1]`` in ``names`` if
    ``indexes[i]`` is negative, else a 0-based index. whole: return the bytes of the whole encoded value, with its header.
    copied: Spark builds a variant from the value, so it must be well-formed at all depths.

    kinds, lows, highs, starts, sizes: the results for each variant: a kind of ``kernels.variants``, a number as two words,
    and the start and size of its bytes (for a decimal, its scale instead of the size).
    """
    stack = np.empty((MAX_DEPTH, 3), np.int64)
    for row in range(len(kinds)):
        kinds[row] = IS_ABSENT
        lows[row] = highs[row] = starts[row] = sizes[row] = 0
        if not is_valid[row]:
            continue
        end = value_bounds[row + 1]
        at = _place(
            values,
            value_bounds[row],
            end,
            metas,
            meta_bounds[row],
            meta_bounds[row + 1],
            names,
            bounds,
            indexes,
        )
        if at < 0:
            kinds[row] = uint8(IS_ABSENT if at == ABSENT else IS_MALFORMED)
            continue
        kind, low, high, start, size = _scalar(values, at, end)
        if whole and kind != IS_MALFORMED and kind != IS_UNKNOWN:
            start, size = at, value_size(values, at, end)
            if size < 0 or start + size > end:
                kind = IS_MALFORMED
        if copied and (kind == IS_OBJECT or kind == IS_ARRAY):
            meta, meta_end = meta_bounds[row], meta_bounds[row + 1]
            if not is_sound(values, at, end, metas, meta, meta_end, stack):
                kind = IS_MALFORMED
        kinds[row] = uint8(kind)
        lows[row], highs[row], starts[row], sizes[row] = low, high, start, size
