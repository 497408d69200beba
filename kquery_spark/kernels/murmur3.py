"""Murmur3 hashes of integers and bytes as Spark computes them (``Murmur3_x86_32``), with a 32-bit seed for each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

U32 = npt.NDArray[np.uint32]
Positions = npt.NDArray[np.int64]
SPARK_SEED = 42
"""The initial seed of Spark's ``hash`` function and of its hash partitioning."""


def rotate(values: Any, by: int) -> Any:
    """Rotate the bits of unsigned words to the left."""
    kind = values.dtype.type
    return (values << kind(by)) | (values >> kind(values.dtype.itemsize * 8 - by))


def words_at(raw: npt.NDArray[np.uint8], at: Positions, size: int, kind: Any) -> Any:
    """Read a little-endian word of ``size`` bytes at each position."""
    word = np.zeros(len(at), kind)
    for i in range(size):
        word |= raw[at + i].astype(kind) << kind(8 * i)
    return word


def hash_ints(values: Any, seed: U32) -> U32:
    """Hash 32-bit integers."""
    return _finish(_mix(seed, values.astype(np.int32).view(np.uint32)), 4)


def hash_longs(values: Any, seed: U32) -> U32:
    """Hash 64-bit integers."""
    words = np.ascontiguousarray(values, np.int64).view(np.uint64)
    low, high = words.astype(np.uint32), (words >> np.uint64(32)).astype(np.uint32)
    return _finish(_mix(_mix(seed, low), high), 8)


def hash_bytes(raw: npt.NDArray[np.uint8], begins: Positions, sizes: Positions, seed: U32) -> U32:
    """Hash the slices of ``raw`` that begin at ``begins`` and have ``sizes`` bytes."""
    h = seed.copy()
    rows = np.arange(len(begins))
    # Step by step, hash the next four bytes of all slices that are long enough.
    for step in range(int(sizes.max(initial=0)) // 4):
        rows = rows[sizes[rows] >= 4 * step + 4]
        h[rows] = _mix(h[rows], words_at(raw, begins[rows] + 4 * step, 4, np.uint32))
    for i in range(3):  # Spark hashes up to three remaining bytes one by one, as signed integers
        rows = np.flatnonzero(sizes % 4 > i)
        tail = raw[begins[rows] + sizes[rows] // 4 * 4 + i].view(np.int8).astype(np.int32)
        h[rows] = _mix(h[rows], tail.view(np.uint32))
    return _finish(h, sizes)


def _mix(h: U32, k: U32) -> U32:
    k = rotate(k * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return np.asarray(rotate(h ^ k, 13) * np.uint32(5) + np.uint32(0xE6546B64))


def _finish(h: U32, length: Any) -> U32:
    h = h ^ np.asarray(length, np.uint32)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return h ^ (h >> np.uint32(16))
