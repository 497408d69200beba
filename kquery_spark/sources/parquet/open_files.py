"""The Parquet files that this process has open, with their footers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kquery_spark.errors import SourceError
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.files import check_unchanged, local_path
from kquery_spark.sources.input_file import forget_input
from kquery_spark.sources.parquet.file import OpenFile

_MAX_CACHED_FOOTERS = 512
_MAX_FOOTERS_AT_ONCE = 32  # that are fetched from another filesystem

_cache: OrderedDict[DataFile, OpenFile] = OrderedDict()
_lock = threading.Lock()


def open_file(file: DataFile) -> OpenFile:
    """The open file, from this process's cache when it has not changed since."""
    with _lock:
        cached = _cache.get(file)
        if cached is not None:
            _cache.move_to_end(file)
    if cached is not None:
        try:
            check_unchanged(file)
        except SourceError:
            forget_file(file)
            raise
        return cached
    opened = OpenFile(file)
    with _lock:
        _cache[file] = opened
        while len(_cache) > _MAX_CACHED_FOOTERS:
            _cache.popitem(last=False)
    return opened


def open_files(files: Sequence[DataFile]) -> list[OpenFile]:
    """The open files; footers on other filesystems, of which each takes a while, are fetched at the same time."""
    if len(files) < 2 or all(local_path(file.path) is not None for file in files):
        return [open_file(file) for file in files]
    with ThreadPoolExecutor(_MAX_FOOTERS_AT_ONCE) as pool:
        return list(pool.map(open_file, files))


def forget_file(file: DataFile) -> None:
    """Let go of a file that is gone or has changed."""
    with _lock:
        _cache.pop(file, None)
    forget_input(file)
