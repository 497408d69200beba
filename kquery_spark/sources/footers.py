"""Caches the parsed footers of Parquet files, and reads the footers of many files concurrently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kquery_spark.sources.base import DataFile
from kquery_spark.sources.files import local_path
from kquery_spark.sources.lru_cache import LruCache, Sized

MAX_BYTES = 256 << 20
_MAX_CONCURRENT_READS = 32  # of footers on another filesystem

T = TypeVar("T")

PARQUET_FOOTERS: LruCache[DataFile, Sized] = LruCache(MAX_BYTES)
"""Parsed footers of Parquet files that this process has read."""


def map_files(read: Callable[[DataFile], T], files: Sequence[DataFile]) -> list[T]:
    """Call ``read`` for each file and return the results; files on other filesystems are read concurrently."""
    if len(files) < 2 or all(local_path(file.path) is not None for file in files):
        return [read(file) for file in files]
    with ThreadPoolExecutor(_MAX_CONCURRENT_READS) as pool:
        return list(pool.map(read, files))
