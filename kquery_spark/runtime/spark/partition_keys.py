"""Keys that Spark's hash partitioning sends to a wanted partition, for versions that cannot be told the partition itself.

Spark sends a row to ``pmod(murmur3(key), partitions)``.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kquery_spark.kernels.murmur3 import SPARK_SEED, hash_ints

_MAX_COUNTS = 16  # numbers of partitions whose keys a process keeps


@lru_cache(_MAX_COUNTS)
def partition_keys(count: int) -> npt.NDArray[np.int32]:
    """For each of ``count`` partitions the smallest key, an int from 0 on, that is sent to it."""
    keys = np.full(count, -1, np.int32)
    start, step = 0, 4 * count + 64
    while (keys < 0).any():
        candidates = np.arange(start, start + step, dtype=np.int32)
        new = np.full(count, -1, np.int32)
        # backwards, as numpy keeps the last of several keys that are assigned
        new[partitions_of(candidates, count)[::-1]] = candidates[::-1]
        keys = np.where(keys < 0, new, keys)
        start += step
    return keys


def partitions_of(keys: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.int32]:
    """The partition of ``count`` that Spark sends each key to."""
    seed = np.full(len(keys), SPARK_SEED, np.uint32)
    return np.mod(hash_ints(keys, seed).view(np.int32), np.int32(count))
