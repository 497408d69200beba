"""Caches the parsed footers of Parquet files, and reads the footers of many files concurrently."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


def map_files(read: Callable[[DataFile], T], files: Sequence[DataFile]) -> Iterator[T]:
    """Call ``read`` for each file and yield the results; files on other filesystems are read concurrently.

    The results of local files are created one at a time: those of 100,000 files could take gigabytes.
    """
    if len(files) < 2 or all(local_path(file.path) is not None for file in files):
        yield from map(read, files)
        return
    with ThreadPoolExecutor(_MAX_CONCURRENT_READS) as pool:
        yield from pool.map(read, files)
