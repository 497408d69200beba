"""Finds keys that Spark's hash partitioning sends to a given partition, for Spark versions without direct partitioning.

Spark sends a row to the partition ``pmod(murmur3(key), partitions)``. The engine has already computed the partition of each
row, so it writes a key with this hash instead of the number of the partition.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kquery_spark.kernels.murmur3 import SPARK_SEED, hash_ints

_MAX_COUNTS = 16  # a process caches the keys for this many different partition counts


@lru_cache(_MAX_COUNTS)
def partition_keys(count: int) -> npt.NDArray[np.int32]:
    """Return, for each of ``count`` partitions, the smallest non-negative int key that Spark sends to it."""
    keys = np.full(count, -1, np.int32)
    start, step = 0, 4 * count + 64
    while (keys < 0).any():
        candidates = np.arange(start, start + step, dtype=np.int32)
        new = np.full(count, -1, np.int32)
        # In reverse order: if several keys belong to one partition, numpy keeps the last assignment, the smallest key.
        new[partitions_of(candidates, count)[::-1]] = candidates[::-1]
        keys = np.where(keys < 0, new, keys)
        start += step
    return keys


def partitions_of(keys: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.int32]:
    """Return the partition, of ``count``, to which Spark sends each key."""
    seed = np.full(len(keys), SPARK_SEED, np.uint32)
    return np.mod(hash_ints(keys, seed).view(np.int32), np.int32(count))
