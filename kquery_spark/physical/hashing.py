"""Hashes of values and the partitions of rows.

The hash of a value is the same in every process and for every physical form: a string hashes like the entry of a dictionary,
and a narrow decimal like a wide one. Otherwise equal keys from two tasks could be sent to different partitions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.functions.encoding.hashes import murmur3_hash
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.kernels import integer_order
from kquery_spark.kernels.ordered_bytes import ordered_bytes
from kquery_spark.kernels.text import Words
from kquery_spark.physical.grouping.key_values import as_integers, check_key_type, normalized_bits
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector, decimal_words, validity

UInt64s = npt.NDArray[np.uint64]
# The multipliers and the increment of splitmix64, and an arbitrary hash for NULL.
_A = np.uint64(0xBF58476D1CE4E5B9)
_B = np.uint64(0x94D049BB133111EB)
_SEED = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x2545F4914F6CDD1D)
_RADIX_SORT_VALUES = 1 << 16  # the number of 16-bit integers, which numpy sorts by radix sort


def mix(values: UInt64s) -> UInt64s:
    """The finalizer of splitmix64: every input bit changes half of the output bits."""
    values = (values ^ (values >> np.uint64(30))) * _A
    values = (values ^ (values >> np.uint64(27))) * _B
    return values ^ (values >> np.uint64(31))


def hash_vector(vector: Vector) -> UInt64s:
    """Return one hash per row. All NULLs have the same hash. For a dictionary, each entry is hashed only once."""
    check_key_type(vector.dtype)
    if vector.is_dictionary:
        data = vector.data
        values = (
            hash_vector(Vector(vector.dtype, data.dictionary)) if len(data.dictionary) else np.full(1, _NULL)
        )
        hashes = values[data.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    else:
        hashes = _hash(vector)
    valid = validity(vector.data)
    return hashes if valid is None else np.where(valid, hashes, _NULL)


def _hash(vector: Vector) -> UInt64s:
    integers = as_integers(vector)
    if integers is not None:
        return mix(np.asarray(dk.as_int64(integers)).view(np.uint64) + _SEED)
    if t.is_fractional(vector.dtype):
        return mix(np.asarray(dk.as_int64(normalized_bits(vector.data))).view(np.uint64) + _SEED)
    if t.is_decimal(vector.dtype):
        low, high = decimal_words(vector.data).T
        hashes = mix(np.ascontiguousarray(low).view(np.uint64) + _SEED)
        wide = high != (low >> 63)  # a value that fits into int64 must have the hash of its narrow form
        return np.where(wide, mix(hashes ^ np.ascontiguousarray(high).view(np.uint64)), hashes)
    if t.is_nested(vector.dtype):
        return hash_bytes(ordered_bytes(vector.data))
    if pa.types.is_null(vector.dtype):
        return np.full(len(vector.data), _NULL)
    return hash_bytes(vector.data)


def hash_bytes(data: pa.Array) -> UInt64s:
    """Return hashes of strings or binaries. Each round mixes the next eight bytes of all rows that are long enough."""
    words = Words(data)
    hashes = mix(words.lengths.astype(np.uint64) + _SEED)
    rows = np.flatnonzero(words.lengths > 0)
    for offset in range(0, int(words.lengths.max(initial=0)), 8):
        rows = rows[words.lengths.take(rows) > offset]
        hashes[rows] = mix(hashes[rows] ^ words.at(offset, rows))
    return hashes


def partition_ids(keys: Sequence[Vector], num_rows: int, count: int) -> npt.NDArray[np.int64]:
    """Return the partition of each row, from 0 to ``count - 1``. The upper bits of the hash decide."""
    return _partitions(_row_hashes(keys, num_rows), count)


def spill_partition_ids(
    keys: Sequence[Vector], num_rows: int, count: int, level: int
) -> npt.NDArray[np.int64]:
    """Return the partition of each row, from 0 to ``count - 1``, independently of ``partition_ids`` and of other levels.

    The hash is mixed once more with a constant of the level. Otherwise the rows of a task would fall into one partition or a
    few: after an exchange into 256 tasks, the hashes of all rows in task 7 are 7 modulo 256.
    """
    constant = np.uint64((level + 1) * int(_SEED) % 2**64)
    return _partitions(mix(_row_hashes(keys, num_rows) + constant), count)


def _row_hashes(keys: Sequence[Vector], num_rows: int) -> UInt64s:
    """Return one hash per row for all keys together."""
    total = np.full(num_rows, _SEED)
    for key in keys:
        total = mix(total ^ hash_vector(key.filled(num_rows)))
    return total


def _partitions(hashes: UInt64s, count: int) -> npt.NDArray[np.int64]:
    return ((hashes >> np.uint64(33)) % np.uint64(count)).astype(np.int64)


def bucket_ids(columns: Sequence[Vector], num_rows: int, count: int) -> npt.NDArray[np.int64]:
    """Return the bucket, from 0 to ``count - 1``, that Spark writes each row to. columns: the table's bucket columns."""
    return np.asarray(murmur3_hash(columns, num_rows).astype(np.int64) % count)


def partition_order(ids: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return the row numbers sorted by partition, in row order within each partition. ids: the partition of each row.

    numpy uses a radix sort for 16-bit integers, which is several times as fast as its sort of wider ones.
    """
    if count > _RADIX_SORT_VALUES:
        return integer_order.stable_order(ids)
    return np.argsort(ids.astype(np.uint16), kind="stable")
