"""Footers that a process keeps: bounded by bytes, and read once by a plan over many files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from kquery_spark.sources.base import DataFile
from kquery_spark.sources.lru_cache import LruCache, Sized
from kquery_spark.sources.parquet import open_files
from kquery_spark.sources.parquet.path_source import parquet_source

FILES = 600


@dataclass(frozen=True)
class Stored:
    nbytes: int


def a_file(name: str) -> DataFile:
    return DataFile(name, 1, 1)


def test_those_not_used_for_longest_go_first():
    footers = LruCache[DataFile, Stored](max_bytes=100)
    for name in "abc":
        footers.put(a_file(name), Stored(40))
        footers.get(a_file("a"))
    assert [footers.get(a_file(name)) is not None for name in "abc"] == [True, False, True]
    assert footers.nbytes == 80
    footers.put(a_file("a"), Stored(10))
    assert footers.nbytes == 50
    footers.put(a_file("d"), Stored(1000))
    assert footers.nbytes == 1000
    footers.forget(a_file("d"))
    footers.forget(a_file("d"))
    assert footers.nbytes == 0


def test_each_footer_of_many_files_is_read_once(tmp_path, monkeypatch):
    for number in range(FILES):
        pq.write_table(pa.table({"a": [number], "b": ["x"]}), tmp_path / f"{number}.parquet")
    opened = Counter()

    class Counted(open_files.OpenFile):
        def __init__(self, file: DataFile) -> None:
            opened[file.path] += 1
            super().__init__(file)

    monkeypatch.setattr(open_files, "OpenFile", Counted)
    # The process's cache may be full of other tests' footers, and would not grow.
    footers: LruCache[DataFile, Sized] = LruCache(256 << 20)
    monkeypatch.setattr(open_files, "_footers", footers)
    for _ in range(2):
        source = parquet_source([str(tmp_path)])
        source.check_files(["a", "b"])
        assert source.row_count() == FILES
        assert source.column_bytes(["a", "b"]) == source.column_bytes(["a"]) + source.column_bytes(["b"]) > 0
        assert all(source.ranges(split, "a") is not None for split in source.splits())
    assert len(opened) == FILES
    # the first was opened for the schema, before the files' partitions were known
    assert set(opened.values()) <= {1, 2}
    assert sum(opened.values()) <= FILES + 1
    assert footers.nbytes > FILES << 10
