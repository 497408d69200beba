"""The footers of files: those that this process keeps parsed, and how those of many files are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kquery_spark.sources.base import DataFile
from kquery_spark.sources.files import local_path
from kquery_spark.sources.lru_cache import LruCache, Sized

MAX_BYTES = 256 << 20
_MAX_FOOTERS_AT_ONCE = 32  # that are fetched from another filesystem

T = TypeVar("T")

PARQUET_FOOTERS: LruCache[DataFile, Sized] = LruCache(MAX_BYTES)
"""Those of this process's Parquet files."""


def of_each_file(read: Callable[[DataFile], T], files: Sequence[DataFile]) -> list[T]:
    """What ``read`` gives of each file; of other filesystems it reads several at the same time, as each takes a while."""
    if len(files) < 2 or all(local_path(file.path) is not None for file in files):
        return [read(file) for file in files]
    with ThreadPoolExecutor(_MAX_FOOTERS_AT_ONCE) as pool:
        return list(pool.map(read, files))
