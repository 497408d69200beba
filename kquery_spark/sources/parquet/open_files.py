"""The cache of this process's open Parquet files and their footers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from kquery_spark.errors import SourceError
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.files import check_unchanged
from kquery_spark.sources.footers import PARQUET_FOOTERS, map_files
from kquery_spark.sources.input_file import forget_input
from kquery_spark.sources.lru_cache import LruCache
from kquery_spark.sources.parquet.file import OpenFile

_footers = cast("LruCache[DataFile, OpenFile]", PARQUET_FOOTERS)


def open_file(file: DataFile, *, check: bool = True) -> OpenFile:
    """Open a file, or return it from the cache.

    check: whether to raise SourceError if the file at this path has changed since it was cached. Reads of bytes check the
    open file in any case; it stays the same version if another file replaces it at its path.
    """
    cached = _footers.get(file)
    if cached is not None:
        if not check:
            return cached
        try:
            check_unchanged(file)
        except SourceError:
            forget_file(file)
            raise
        return cached
    opened = OpenFile(file)
    _footers.put(file, opened)
    return opened


def open_files(files: Sequence[DataFile]) -> Iterator[OpenFile]:
    """Open several files, remote ones concurrently."""
    return map_files(open_file, files)


def forget_file(file: DataFile) -> None:
    """Remove a deleted or changed file from the caches."""
    _footers.forget(file)
    forget_input(file)
