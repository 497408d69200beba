"""Hashes of values, the same in every process and for every physical form, and the task that a row goes to by them."""

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
from kquery_spark.physical.keys import as_integers, check_key_type, normalized_bits
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector, decimal_words, validity

UInt64s = npt.NDArray[np.uint64]
_A = np.uint64(0xBF58476D1CE4E5B9)
_B = np.uint64(0x94D049BB133111EB)
_SEED = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x2545F4914F6CDD1D)
_RADIX_SORT_VALUES = 1 << 16  # different integers of 16 bits


def mix(values: UInt64s) -> UInt64s:
    """The finalizer of splitmix64: every input bit changes half of the output bits."""
    values = (values ^ (values >> np.uint64(30))) * _A
    values = (values ^ (values >> np.uint64(27))) * _B
    return values ^ (values >> np.uint64(31))


def hash_vector(vector: Vector) -> UInt64s:
    """One hash a row; NULLs hash alike."""
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
        wide = high != (low >> 63)  # what fits int64 must hash as its narrow form does
        return np.where(wide, mix(hashes ^ np.ascontiguousarray(high).view(np.uint64)), hashes)
    if t.is_nested(vector.dtype):
        return hash_bytes(ordered_bytes(vector.data))
    if pa.types.is_null(vector.dtype):
        return np.full(len(vector.data), _NULL)
    return hash_bytes(vector.data)


def hash_bytes(data: pa.Array) -> UInt64s:
    """Hashes of strings or binaries, eight bytes of every row at a time."""
    words = Words(data)
    hashes = mix(words.lengths.astype(np.uint64) + _SEED)
    rows = np.flatnonzero(words.lengths > 0)
    for offset in range(0, int(words.lengths.max(initial=0)), 8):
        rows = rows[words.lengths.take(rows) > offset]
        hashes[rows] = mix(hashes[rows] ^ words.at(offset, rows))
    return hashes


def partition_ids(keys: Sequence[Vector], num_rows: int, count: int) -> npt.NDArray[np.int64]:
    """The task, in ``[0, count)``, that each row goes to."""
    total = np.full(num_rows, _SEED)
    for key in keys:
        total = mix(total ^ hash_vector(Vector(key.dtype, key.physical(num_rows))))
    return ((total >> np.uint64(33)) % np.uint64(count)).astype(np.int64)


def bucket_ids(columns: Sequence[Vector], num_rows: int, count: int) -> npt.NDArray[np.int64]:
    """The bucket, in ``[0, count)``, that Spark writes each row to, given the columns that a table is bucketed by."""
    return np.asarray(murmur3_hash(columns, num_rows).astype(np.int64) % count)


def partition_order(ids: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Row numbers by partition, those of one partition in their own order; ``ids`` are in ``[0, count)``.

    numpy sorts integers of 16 bits by digits, several times as fast as it sorts wider ones.
    """
    if count > _RADIX_SORT_VALUES:
        return integer_order.stable_order(ids)
    return np.argsort(ids.astype(np.uint16), kind="stable")
