"""The binary layout of variants: headers, numbers, and the order of field names.

The format is Parquet's "Variant Binary Encoding". The first byte of a value has the basic type in its lower two bits:

- a primitive value or a short string has its type or length in the upper six bits, and its bytes follow;
- an object is ``header, size, ids, offsets, values``, with one id per field (its position in the metadata, a dictionary of
  names) and ``size + 1`` offsets; an array is the same without ids.

For example, the object ``{"a": 1}`` is 02 01 00 00 02 0C 01: the header, one field, id 0, the offsets 0 and 2, and the int8
value 1. Positions count from the first byte of the column; a value must not extend beyond ``end``. Functions return
``MALFORMED``, a negative number, for malformed data.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import int64

PRIMITIVE, SHORT_STRING, OBJECT, ARRAY = 0, 1, 2, 3  # basic types, the lower two bits of a header
# Types of primitive values, the upper six bits of a header.
NULL, TRUE, FALSE, INT8, INT16, INT32, INT64 = 0, 1, 2, 3, 4, 5, 6
DOUBLE, DECIMAL4, DECIMAL8, DECIMAL16, DATE, TIMESTAMP, TIMESTAMP_NTZ = 7, 8, 9, 10, 11, 12, 13
FLOAT, BINARY, STRING, UUID = 14, 15, 16, 20
MALFORMED, ABSENT = -2, -1
VERSION, VERSION_BITS = 1, 0x0F

Raw = numba.types.Array(numba.uint8, 1, "C", readonly=True)
Offsets = numba.types.Array(numba.int64, 1, "C", readonly=True)
Bytes, Numbers = numba.uint8[::1], numba.int64[::1]


@numba.njit(int64(Raw, int64, int64, int64), cache=True, nogil=True)
def unsigned(raw: Any, at: Any, size: Any, end: Any) -> Any:
    """Read an unsigned little-endian number of ``size`` bytes; MALFORMED if it is not less than 2 ** 31."""
    if at + size > end:
        return MALFORMED
    number = int64(0)
    for i in range(size):
        number |= int64(raw[at + i]) << (8 * i)
    return number if number < 1 << 31 else MALFORMED


@numba.njit(int64(Raw, int64, int64), cache=True, nogil=True)
def signed(raw: Any, at: Any, size: Any) -> Any:
    """Read a signed little-endian number of up to eight bytes."""
    number = int64(0)
    for i in range(size):
        number |= int64(raw[at + i]) << (8 * i)
    shift = 64 - 8 * size
    return (number << shift) >> shift


@numba.njit(inline="always")
def id_bytes(header: Any) -> Any:
    """Return the number of bytes of a field id in an object with this header."""
    return ((int64(header) >> 4) & 3) + 1


@numba.njit(numba.types.UniTuple(int64, 4)(Raw, int64, int64), cache=True, nogil=True)
def container(raw: Any, at: Any, end: Any) -> Any:
    """Read the header of an object or array.

    Returns the number of its values, the bytes per offset, the start of the offsets, and the start of the values. The field
    ids of an object end where the offsets start.
    """
    info = int64(raw[at]) >> 2
    is_object = raw[at] & 3 == OBJECT
    is_large = (info >> 4 if is_object else info >> 2) & 1
    size_bytes = 4 if is_large else 1
    size = unsigned(raw, at + 1, size_bytes, end)
    if size < 0:
        return int64(MALFORMED), int64(0), int64(0), int64(0)
    offset_bytes = (info & 3) + 1
    offsets = at + 1 + size_bytes + (size * id_bytes(raw[at]) if is_object else 0)
    return size, offset_bytes, offsets, offsets + (size + 1) * offset_bytes


@numba.njit(numba.types.UniTuple(int64, 2)(Raw, int64, int64, int64), cache=True, nogil=True)
def name_of(metas: Any, at: Any, end: Any, number: Any) -> Any:
    """Return the start and end of the name of an id in the metadata that begins at ``at``."""
    offset_bytes = ((int64(metas[at]) >> 6) & 3) + 1
    count = unsigned(metas, at + 1, offset_bytes, end)
    if count < 0 or number < 0 or number >= count:
        return int64(MALFORMED), int64(0)
    low = unsigned(metas, at + 1 + (number + 1) * offset_bytes, offset_bytes, end)
    high = unsigned(metas, at + 1 + (number + 2) * offset_bytes, offset_bytes, end)
    start = at + 1 + (count + 2) * offset_bytes
    if low < 0 or high < low or start + high > end:
        return int64(MALFORMED), int64(0)
    return start + low, start + high


@numba.njit(int64(Raw, int64, int64, Raw, int64, int64), cache=True, nogil=True)
def compare_names(names: Any, at: Any, end: Any, others: Any, low: Any, high: Any) -> Any:
    """Compare two names in the order of Java strings, which is that of UTF-16 code units; return -1, 0 or 1."""
    for i in range(min(end - at, high - low)):
        one, other = names[at + i], others[low + i]
        if one != other:
            # UTF-8 and UTF-16 differ only here: characters above U+FFFF are surrogate pairs, which sort before U+E000
            if one >= 0xEE and other >= 0xEE and (one >= 0xF0) != (other >= 0xF0):
                return -1 if one >= 0xF0 else 1
            return -1 if one < other else 1
    if end - at == high - low:
        return 0
    return -1 if end - at < high - low else 1


@numba.njit(int64(int64), cache=True, nogil=True)
def primitive_size(info: Any) -> Any:
    """Return the size in bytes of a primitive value of fixed size, with its header; ABSENT for an unknown type."""
    if info <= FALSE:
        return 1
    if info <= INT16:
        return info - INT8 + 2
    if info == INT32 or info == DATE or info == FLOAT:
        return 5
    if info == DECIMAL4:
        return 6
    if info == DECIMAL8:
        return 10
    if info == DECIMAL16:
        return 18
    if info == INT64 or info == DOUBLE or info == TIMESTAMP or info == TIMESTAMP_NTZ:
        return 9
    return 17 if info == UUID else ABSENT


@numba.njit(int64(Raw, int64, int64), cache=True, nogil=True)
def value_size(raw: Any, at: Any, end: Any) -> Any:
    """Return the size in bytes of the value at ``at``; ABSENT for an unknown type."""
    if at >= end:
        return MALFORMED
    basic, info = raw[at] & 3, int64(raw[at]) >> 2
    if basic == SHORT_STRING:
        return 1 + info
    if basic != PRIMITIVE:
        size, offset_bytes, offsets, start = container(raw, at, end)
        if size < 0:
            return MALFORMED
        last = unsigned(raw, offsets + size * offset_bytes, offset_bytes, end)
        return MALFORMED if last < 0 else start - at + last
    if info == BINARY or info == STRING:
        size = unsigned(raw, at + 1, 4, end)
        return MALFORMED if size < 0 else 5 + size
    return primitive_size(info)
