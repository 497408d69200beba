"""The encoding of one key column of a hash join as integer codes; ``join_table`` explains the codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.kernels.hash_index import HashIndex
from kquery_spark.kernels.ordered_bytes import ordered_bytes
from kquery_spark.physical.bytes_index import BytesIndex, find_positions
from kquery_spark.physical.grouping.groups import MAX_CARDINALITY
from kquery_spark.physical.grouping.key_values import as_integers, normalized_bits
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector, decimal_words, narrow, slots, validity

MAX_DENSE_CODES = 64 * 1024 * 1024
"""Up to this number of possible codes, arrays may have one entry per code."""
MAX_DIRECT_CODES = 4 * 1024 * 1024
"""Up to this number of possible codes, arrays may have one entry per code even if most of the codes do not occur."""
_FLAG_BYTES_PER_BUILD_ROW = 256  # the memory, per build row, that a direct test for membership may take
_INT64 = np.iinfo(np.int64)

#: Encodes a column of the given number of rows: returns one code per row.
Encode = Callable[[Vector, int], Int64s]


@dataclass(frozen=True)
class KeySpace:
    """The encoding of one key column.

    size: the number of codes, including 0 for NULL and the last one for values that no build row has. value_range: the
    lowest and the highest value of the build rows, for types with an integer representation; None without values. by_value:
    True if each code between the first and the last one belongs to a value of the build rows. nbytes: the memory of the
    index of these values; 0 without an index.
    """

    encode: Encode
    size: int
    by_value: bool
    value_range: tuple[int, int] | None = None
    nbytes: int = 0


class DirectMemory:
    """The memory that one join table may use for arrays with one entry per possible code.

    For two rows with the keys 0 and 4,000,000, such an array has 4 million entries. If not enough memory is left for an
    array, the join table uses a hash table instead, whose size depends only on the number of rows.
    """

    def __init__(self, nbytes: int) -> None:
        self._left = nbytes

    def reserve(self, nbytes: int) -> bool:
        """Reserve the bytes and return True if they are left; otherwise return False."""
        if nbytes > self._left:
            return False
        self._left -= nbytes
        return True


def reserve_flags(codes: int, build_rows: int, memory: DirectMemory) -> bool:
    """Reserve the memory of flags for membership tests, one byte per possible code; return False if it is too much."""
    most = min(MAX_DENSE_CODES, max(MAX_DIRECT_CODES, _FLAG_BYTES_PER_BUILD_ROW * build_rows))
    return codes <= most and memory.reserve(codes)


def key_space(key: Vector, null_safe: bool, by_range: bool = True) -> KeySpace:
    """Choose the encoding of a build column. Without ``by_range``, it has as many codes as distinct values, plus two."""
    if t.is_decimal(key.dtype) and not key.is_narrow:
        return _by_value(key.plain(), lambda v: v.plain(), null_safe)
    integers = as_integers(key)  # also dates, times and narrow decimals
    if integers is not None:
        return _by_range(integers, null_safe, MAX_CARDINALITY if by_range else 0)
    if key.dtype == t.STRING:
        return _by_string(key, null_safe)
    if t.is_fractional(key.dtype):
        return _by_value(normalized_bits(key.data), lambda v: normalized_bits(v.data), null_safe)
    if t.is_nested(key.dtype):
        return _by_value(ordered_bytes(key.plain()), lambda v: ordered_bytes(v.plain()), null_safe)
    return _by_value(key.plain(), lambda v: v.plain(), null_safe)


def _with_nulls(codes: Int64s, data: pa.Array, null_code: int) -> Int64s:
    """Return the codes with ``null_code`` for the NULLs of ``data``."""
    valid = validity(data)
    return codes if valid is None else np.where(valid, codes, null_code)


def _by_range(build: pa.Array, null_safe: bool, limit: int) -> KeySpace:
    """Encode integers by their offset from the smallest build value, or by value if the range has ``limit`` codes or more.

    For build values from 10 to 12, the codes are 10 -> 1, 11 -> 2, 12 -> 3, and 4 for all other values.
    """
    min_max = pc.min_max(build)
    empty = len(build) == build.null_count
    low, high = (1, 0) if empty else (min_max["min"].as_py(), min_max["max"].as_py())
    value_range = None if empty else (low, high)
    size = high - low + 3
    absent = _find_absent_value(build, low, high)
    if size >= limit:
        space = _by_value(build, lambda v: _integers_of(v, absent), null_safe)
        return replace(space, value_range=value_range)
    null_code = 0 if null_safe else size - 1

    def encode(vector: Vector, num_rows: int) -> Int64s:
        data = _integers_of(vector, absent)
        # As unsigned integers, values below the range wrap around to far above it, so one minimum handles both sides.
        with np.errstate(over="ignore"):
            offsets = (np.asarray(dk.as_int64(data)) - np.int64(low)).view(np.uint64)
        np.minimum(offsets, np.uint64(size - 2), out=offsets)
        offsets += np.uint64(1)
        return _with_nulls(offsets.view(np.int64), data, null_code)

    return KeySpace(encode, size, False, value_range)


def _find_absent_value(build: pa.Array, low: int, high: int) -> int:
    """Return an int64 that is not among the build values."""
    if high < _INT64.max:
        return int(_INT64.max)
    if low > _INT64.min:
        return int(_INT64.min)
    return int(np.setdiff1d(_INT64.max - np.arange(len(build) + 1), build.drop_null())[0])


def _integers_of(vector: Vector, absent: int) -> pa.Array:
    """Return probe values as int64. Decimals that do not fit into int64 match no build value, so they become ``absent``."""
    data = as_integers(vector)
    if data is not None:
        return data
    wide = vector.plain()
    slim = narrow(wide)
    if slim is not None:
        return slim
    low, high = decimal_words(wide).T
    values = np.where(high == low >> 63, low, absent)
    valid = validity(wide)
    return pa.array(values, mask=None if valid is None else ~valid)


def _by_string(key: Vector, null_safe: bool) -> KeySpace:
    """Encode strings by value. For dictionary-encoded columns, only the dictionary is looked up, not each row."""
    values = (key.data.dictionary if key.is_dictionary else key.data).unique().drop_null()
    index = BytesIndex(values)
    lookup = index.lookup
    size = len(values) + 2
    null_code = 0 if null_safe else size - 1

    def encode(vector: Vector, num_rows: int) -> Int64s:
        data = vector.data
        if vector.is_dictionary:
            dictionary = data.dictionary
            codes = _as_codes(lookup(dictionary), size) if len(dictionary) else np.full(1, size - 1)
            codes = codes[data.indices.fill_null(0).to_numpy(zero_copy_only=False)]
        else:
            codes = _as_codes(lookup(data), size)
        return _with_nulls(codes, data, null_code)

    return KeySpace(encode, size, True, nbytes=index.nbytes)


def _by_value(build: pa.Array, form: Callable[[Vector], pa.Array], null_safe: bool) -> KeySpace:
    """Encode values by their position among the distinct build values. form: converts a probe column to ``build``'s form."""
    values = build.unique().drop_null()
    lookup, nbytes = _lookup(values)
    size = len(values) + 2
    null_code = 0 if null_safe else size - 1

    def encode(vector: Vector, num_rows: int) -> Int64s:
        data = form(vector)
        if data.type != values.type:
            data = data.cast(values.type)
        return _with_nulls(_as_codes(lookup(data), size), data, null_code)

    return KeySpace(encode, size, True, nbytes=nbytes)


def _lookup(values: pa.Array) -> tuple[Callable[[pa.Array], Int64s], int]:
    """Return a lookup function, and the memory of its index in bytes.

    The function returns the position of each row among the distinct values, -1 if absent, any for NULL.
    """
    if pa.types.is_int64(values.type):
        index = HashIndex(slots(values))
        return lambda data: index.lookup(slots(data)), index.nbytes
    if values.type in (t.STRING, t.BINARY):
        bytes_index = BytesIndex(values)
        return bytes_index.lookup, bytes_index.nbytes
    return lambda data: find_positions(data, values), values.nbytes


def _as_codes(positions: Int64s, size: int) -> Int64s:
    """Return codes from 1 on for positions from 0 on, and the last code for the position -1 (no build row has the value)."""
    return np.where(positions < 0, size - 1, positions + 1)
