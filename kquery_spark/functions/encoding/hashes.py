"""Spark's hashes: Murmur3 (``hash``) and XXH64 (``xxhash64``) over any columns but maps in numpy, and digests of bytes.

The hash of a column is the seed of the next, as that of a field or an element is; NULL leaves the seed as it is.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import PlanError
from kquery_spark.functions.call_form import ALL_COLUMNS
from kquery_spark.functions.core.distinct import each_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.registry import (
    CallContext,
    CatalystParameters,
    Function,
    Nullability,
    accept,
    cast_to,
    register,
)
from kquery_spark.kernels import murmur3
from kquery_spark.kernels.murmur3 import Positions, rotate, words_at
from kquery_spark.kernels.ordered_bytes import can_order
from kquery_spark.kernels.text import layout
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector, interval_storage

U64 = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]


class _Murmur3:
    kind = np.uint32
    of_int = staticmethod(murmur3.hash_ints)
    of_long = staticmethod(murmur3.hash_longs)
    of_bytes = staticmethod(murmur3.hash_bytes)


# --- XXH64 ----------------------------------------------------------------------------------------

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(p)
    for p in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


def _avalanche(h: U64) -> U64:
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))


class _XxHash64:
    kind = np.uint64

    @staticmethod
    def of_int(values: Any, seed: U64) -> U64:
        h = seed + _P5 + np.uint64(4)
        h ^= values.astype(np.int32).view(np.uint32).astype(np.uint64) * _P1
        return _avalanche(rotate(h, 23) * _P2 + _P3)

    @staticmethod
    def of_long(values: Any, seed: U64) -> U64:
        h = seed + _P5 + np.uint64(8)
        h ^= rotate(np.ascontiguousarray(values, np.int64).view(np.uint64) * _P2, 31) * _P1
        return _avalanche(rotate(h, 27) * _P1 + _P4)

    @staticmethod
    def of_bytes(raw: npt.NDArray[np.uint8], begins: Positions, sizes: Positions, seed: U64) -> U64:
        h = seed + _P5
        rows = np.flatnonzero(sizes >= 32)
        if len(rows):
            h[rows] = _XxHash64._stripes(raw, begins[rows], sizes[rows], seed[rows])
        h += sizes.astype(np.uint64)
        done = sizes // 32 * 32
        for step in range(3):
            rows = np.flatnonzero(sizes - done >= 8 * step + 8)
            word = words_at(raw, begins[rows] + done[rows] + 8 * step, 8, np.uint64)
            h[rows] = rotate(h[rows] ^ (rotate(word * _P2, 31) * _P1), 27) * _P1 + _P4
        done = sizes // 8 * 8
        rows = np.flatnonzero(sizes - done >= 4)
        word = words_at(raw, begins[rows] + done[rows], 4, np.uint64)
        h[rows] = rotate(h[rows] ^ (word * _P1), 23) * _P2 + _P3
        done = sizes // 4 * 4
        for i in range(3):
            rows = np.flatnonzero(sizes - done > i)
            byte = raw[begins[rows] + done[rows] + i].astype(np.uint64)
            h[rows] = rotate(h[rows] ^ (byte * _P5), 11) * _P1
        return _avalanche(h)

    @staticmethod
    def _stripes(raw: npt.NDArray[np.uint8], begins: Positions, sizes: Positions, seed: U64) -> U64:
        lanes = [seed + _P1 + _P2, seed + _P2, seed.copy(), seed - _P1]
        rows = np.arange(len(begins))
        for step in range(int(sizes.max()) // 32):
            rows = rows[sizes[rows] >= 32 * step + 32]
            for i, lane in enumerate(lanes):
                word = words_at(raw, begins[rows] + 32 * step + 8 * i, 8, np.uint64)
                lane[rows] = rotate(lane[rows] + word * _P2, 31) * _P1
        h = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18)
        for lane in lanes:
            h = (h ^ (rotate(lane * _P2, 31) * _P1)) * _P1 + _P4
        return np.asarray(h)


# --- columns --------------------------------------------------------------------------------------


def _column(vector: Vector, length: int, seed: Any, method: Any) -> Any:
    """The hash of each row's value with the running seed."""
    dtype = vector.dtype
    if dtype == t.NULL:
        return seed
    array = vector.physical(length) if vector.is_narrow else vector.array(length)
    if array.null_count == length:
        return seed
    if pa.types.is_struct(dtype):
        hashed = _structs(array, seed, method)
    elif pa.types.is_list(dtype):
        hashed = _lists(array, seed, method)
    elif t.is_decimal(dtype):
        hashed = _decimals(Vector(dtype, array), length, seed, method)
    elif dtype in (t.STRING, t.BINARY):
        offsets, raw = layout(array)
        hashed = method.of_bytes(raw, offsets[:-1], offsets[1:] - offsets[:-1], seed)
    else:
        hashed = _numbers(array, seed, method)
    if not array.null_count:
        return hashed
    return np.where(np.asarray(array.is_null().to_numpy(zero_copy_only=False)), seed, hashed)


def _structs(array: pa.Array, seed: Any, method: Any) -> Any:
    for i, field in enumerate(array.type):
        seed = _column(Vector(field.type, pc.struct_field(array, [i])), len(array), seed, method)
    return seed


def _lists(array: pa.Array, seed: Any, method: Any) -> Any:
    """The first elements of all rows, then the second ones of those that have them, and so on."""
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    sizes = np.where(np.asarray(array.is_valid().to_numpy(zero_copy_only=False)), np.diff(offsets), 0)
    hashed = seed.copy()
    rows = np.arange(len(array))
    for position in range(int(sizes.max(initial=0))):
        rows = rows[sizes[rows] > position]
        elements = Vector(array.type.value_type, array.values.take(pa.array(offsets[rows] + position)))
        hashed[rows] = _column(elements, len(rows), hashed[rows], method)
    return hashed


def _numbers(array: pa.Array, seed: Any, method: Any) -> Any:
    kind = array.type
    if kind == t.BOOL:
        array = array.cast(t.BYTE)
    elif kind == t.DATE:
        array = array.view(t.INT)
    elif t.is_interval(kind):
        array = interval_storage(array)
    elif pa.types.is_timestamp(kind) or kind == t.TIME:
        array = array.view(t.LONG)
    values = (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)
    if kind in (t.FLOAT, t.DOUBLE):
        values = np.where(np.isnan(values), np.nan, values + 0.0).astype(
            values.dtype
        )  # one NaN, no negative zero
        values = values.view(np.int32 if kind == t.FLOAT else np.int64)
    return (method.of_long if values.dtype.itemsize == 8 else method.of_int)(values, seed)


def _decimals(vector: Vector, length: int, seed: Any, method: Any) -> Any:
    """Up to 18 digits the unscaled long, past that the big-endian bytes of the unscaled integer."""
    if vector.dtype.precision <= 18:
        if not vector.is_narrow:
            vector = Vector(vector.dtype, pa.array(dk.unscaled_integers(vector, length), t.LONG))
        array = vector.data
        return method.of_long(
            (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False), seed
        )
    strings = [_bytes(u) for u in dk.unscaled_integers(vector, length)]
    offsets, raw = layout(pa.array(strings, t.BINARY))
    return method.of_bytes(raw, offsets[:-1], offsets[1:] - offsets[:-1], seed)


def _bytes(unscaled: int | None) -> bytes:
    """``BigInteger.toByteArray``."""
    if unscaled is None:
        return b""
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return int(unscaled).to_bytes(size, "big", signed=True)


def murmur3_hash(columns: Sequence[Vector], length: int) -> Int32s:
    """Spark's Murmur3 of each row of some columns with the seed 42, which is the result for NULLs, too."""
    seed = np.full(length, murmur3.SPARK_SEED, np.uint32)
    with np.errstate(over="ignore"):
        for column in columns:
            seed = _column(column, length, seed, _Murmur3)
    return np.asarray(seed.view(np.int32))


def xxhash64(vector: Vector, length: int) -> Int64s:
    """Spark's XXH64 of each value with the seed 42, which is the result for NULL, too."""
    with np.errstate(over="ignore"):
        return np.asarray(_column(vector, length, np.full(length, 42, np.uint64), _XxHash64).view(np.int64))


def _hash(method: Any) -> Callable[[Sequence[Vector], CallContext], Data]:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        seed = np.full(context.num_rows, 42, method.kind)
        with np.errstate(over="ignore"):
            for arg in args:
                seed = _column(arg, context.num_rows, seed, method)
        return pa.array(seed.view(np.int32 if method.kind is np.uint32 else np.int64))

    return run


def _hashed(result: pa.DataType) -> Callable[[Sequence[pa.DataType]], pa.DataType]:
    def rule(types: Sequence[pa.DataType]) -> pa.DataType:
        unhashable = next((dtype for dtype in types if not can_order(dtype)), None)
        if unhashable is not None:
            raise PlanError(
                f"values of type {t.spark_name(unhashable)} have no hash, as equal maps may differ in order"
            )
        return result

    return rule


def _digest(name: str) -> Callable[[Sequence[Vector], CallContext], Data]:
    return each_distinct(lambda b: hashlib.new(name, b).hexdigest())


_SHA2 = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


def _sha2(value: bytes, bits: int) -> str | None:
    name = _SHA2.get(bits)
    return None if name is None else hashlib.new(name, value).hexdigest()


_BYTES = cast_to(t.BINARY)

_SEED = CatalystParameters(fixed=(("seed", 42),))  # that of the SQL functions

register(
    Function(
        "hash",
        _hash(_Murmur3),
        _hashed(t.INT),
        catalyst=("Murmur3Hash",),
        parameters=_SEED,
        calls=ALL_COLUMNS,
        arity=(1, None),
        nullable=Nullability.NEVER,
        encoded=True,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "xxhash64",
        _hash(_XxHash64),
        _hashed(t.LONG),
        catalyst=("XxHash64",),
        parameters=_SEED,
        calls=ALL_COLUMNS,
        arity=(1, None),
        nullable=Nullability.NEVER,
        encoded=True,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    # the children are binary: a string argument arrives below a cast
    Function("md5", _digest("md5"), accept(t.STRING, t.BINARY), catalyst=("Md5",), coerce=_BYTES),
    Function(
        "sha1",
        _digest("sha1"),
        accept(t.STRING, t.BINARY),
        catalyst=("Sha1",),
        coerce=_BYTES,
        aliases=("sha",),
    ),
    Function(
        "sha2",
        each_distinct(_sha2),
        accept(t.STRING, t.BINARY, t.INT),
        catalyst=("Sha2",),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        evaluates=(0, 1),
        coerce=cast_to(t.BINARY, t.INT),
    ),
    Function(
        "crc32", each_distinct(zlib.crc32), accept(t.LONG, t.BINARY), catalyst=("Crc32",), coerce=_BYTES
    ),
)
