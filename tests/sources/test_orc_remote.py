"""Stripes of ORC files on other filesystems are fetched before pyarrow reads them, and are those of local files."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

import kquery_spark as kq
from kquery_spark.errors import SourceError
from kquery_spark.physical.operators.base import TaskContext
from kquery_spark.physical.operators.scan import ScanExec
from kquery_spark.sources.input_file import InputFile
from kquery_spark.sources.lru_cache import LruCache
from kquery_spark.sources.orc import file as orc_file
from kquery_spark.sources.orc.source import OrcSource, orc_source
from kquery_spark.sources.prefetch import byte_ranges, fetched_ranges, fetching
from kquery_spark.sources.prefetch.read_counts import read_counts
from tests.support.s3 import new_bucket, storage_options

ROWS = 200_000
COMPRESSIONS = ["uncompressed", "zlib", "snappy", "lz4", "zstd"]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    numbers = np.random.default_rng(4)
    null = numbers.random(ROWS) < 0.1
    return pa.table(
        {
            "id": np.arange(ROWS),
            "some": pa.array(numbers.integers(0, 500, ROWS), mask=null),
            "amount": numbers.random(ROWS),
            "text": [f"t{i}" for i in numbers.integers(0, 30, ROWS)],
            "unique": [f"unique {i}" for i in numbers.integers(0, 1 << 40, ROWS)],
            "nested": pa.array([{"a": i, "b": [i, None]} for i in range(ROWS)]),
            "last": pa.array(numbers.random(ROWS) < 0.5, mask=null),
        }
    )


@pytest.fixture(autouse=True)
def large_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and stripes of all sizes are read as large ones are, except where a test says otherwise."""
    monkeypatch.setattr(orc_file, "_SMALL_FILE_BYTES", 0)
    monkeypatch.setattr(byte_ranges, "MAX_GAP_BYTES", 100)
    monkeypatch.setattr(orc_file, "_REMOTE", LruCache(1 << 20))


Stored = Callable[[str], list[OrcSource]]


@pytest.fixture(scope="module")
def stored(s3_endpoint: str, table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """The same file on this machine and in a bucket, by its compression."""
    directory, fs = tmp_path_factory.mktemp("stripes"), new_bucket(s3_endpoint, "stripes")

    @cache
    def store(compression: str) -> tuple[str, str]:
        local = directory / f"{compression}.orc"
        orc.write_table(table, str(local), compression=compression, stripe_size=1 << 20)
        with fs.open_output_stream(f"stripes/{compression}.orc") as out:
            out.write(local.read_bytes())
        return str(local), f"s3://stripes/{compression}.orc"

    def sources(compression: str) -> list[OrcSource]:
        here, there = store(compression)
        kq.ExecutionContext().register_orc("t", there, storage_options=storage_options(s3_endpoint))
        return [orc_source([here]), orc_source([there])]

    return sources


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_stripes_are_those_of_a_local_file(stored, table, compression):
    here, there = stored(compression)
    assert there.row_count() == ROWS
    splits = here.splits()
    assert there.splits() == splits
    assert len(splits) > 2
    for columns in (table.column_names, ["nested", "id"], ["last"], ["text", "unique"], []):
        for split in splits[1:3]:
            (local,), (remote,) = here.read(split, columns), there.read(split, columns)
            assert remote.to_arrow().equals(local.to_arrow())


@pytest.mark.parametrize("columns", [["id"], ["some", "last"], ["unique", "nested"], ["text"], []])
def test_all_that_pyarrow_reads_is_fetched_before(stored, monkeypatch, columns):
    _, there = stored("zlib")
    split = there.splits()[1]
    release = there.fetch(split, columns)
    size = there.files[0].size

    def read_at(self: InputFile, nbytes: int, offset: int) -> bytes:
        raise AssertionError(f"{nbytes} bytes at {offset} were not fetched")

    monkeypatch.setattr(InputFile, "read_at", read_at)
    before = read_counts()
    (batch,) = there.read(split, columns)
    assert batch.num_rows > 1000
    assert 0 < read_counts().since(before).nbytes < size
    release()


def test_a_scan_reads_only_the_streams_of_its_columns(stored, table):
    _, there = stored("uncompressed")
    read = []
    for columns in (("id",), ("id", "unique")):
        scan = ScanExec(0, "t", there, columns, splits=tuple(there.splits()))
        task = TaskContext()
        assert sum(batch.num_rows for batch in scan.run(task)) == ROWS
        read.append(task.metrics_of(scan).extra["bytes_read"])
    text = sum(len(value) for value in table["unique"].to_pylist())
    assert read[0] < text < read[1] < there.files[0].size


def test_nothing_waits_for_a_thread_that_waits(stored, monkeypatch):
    """The threads that fetch are a few; those that begin a fetch must not wait for others of them."""
    _, there = stored("zlib")
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        for module in (fetching, fetched_ranges):
            monkeypatch.setattr(module, "fetching_threads", lambda: one)
        scan = ScanExec(0, "t", there, ("id", "text"), splits=tuple(there.splits()))
        orc_file._REMOTE.forget(there.files[0])
        read = other.submit(lambda: sum(batch.num_rows for batch in scan.run(TaskContext())))
        assert read.result(60) == ROWS


def test_a_tail_that_is_not_understood_is_left_to_pyarrow(stored, monkeypatch):
    monkeypatch.setattr(orc_file, "orc_tail", lambda file, size: None)
    here, there = stored("zlib")
    split = here.splits()[1]
    there.fetch(split, ["id"])()
    (local,), (remote,) = here.read(split, ["id", "text"]), there.read(split, ["id", "text"])
    assert remote.to_arrow().equals(local.to_arrow())


def test_a_file_that_is_replaced_is_an_error(s3_endpoint, stored):
    _, there = stored("zlib")
    (first, second) = there.splits()[:2]
    next(there.read(first, ["id"]))
    with new_bucket(s3_endpoint, "stripes").open_output_stream("stripes/zlib.orc") as out:
        out.write(b"ORC" * 1000)
    with pytest.raises(SourceError, match=r"stripes/zlib\.orc .*(changed|too early)"):
        next(there.read(second, ["id"]))


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The position and size of each request for bytes of an object, from now on."""
    made: list[tuple[str, int]] = []
    read = InputFile.read_unchecked

    def read_unchecked(self: InputFile, nbytes: int, offset: int) -> bytes:
        made.append((offset, nbytes))
        return read(self, nbytes, offset)

    monkeypatch.setattr(InputFile, "read_unchecked", read_unchecked)
    return made


def test_a_small_file_takes_two_requests(stored, table, requests, monkeypatch):
    monkeypatch.setattr(orc_file, "_SMALL_FILE_BYTES", 16 << 20)
    _, there = stored("zstd")
    splits = there.splits()
    for columns in (["id"], ["text", "unique"], []):
        for split in splits:
            there.fetch(split, columns)()
            (batch,) = there.read(split, columns)
            assert batch.num_rows == split.rows
    size = there.files[0].size
    assert requests == [(size - (64 << 10), 64 << 10), (0, size)]


def test_a_small_stripe_takes_one_request(stored, requests, monkeypatch):
    monkeypatch.setattr(byte_ranges, "MAX_GAP_BYTES", 2 << 20)
    _, there = stored("snappy")
    splits = there.splits()[:-1]
    for split in splits:
        next(there.read(split, ["id", "unique"]))
    assert len(requests) == 1 + len(splits)


@pytest.mark.parametrize("small_bytes", [0, 16 << 20])
def test_the_error_of_a_request_is_raised_as_it_is_and_the_request_is_made_again(
    stored, monkeypatch, small_bytes
):
    monkeypatch.setattr(orc_file, "_SMALL_FILE_BYTES", small_bytes)
    monkeypatch.setattr(orc_file, "_SMALL_FILES", LruCache(64 << 20))
    _, there = stored("lz4")
    split = there.splits()[0]

    def no_answer(self: InputFile, nbytes: int, offset: int) -> bytes:
        raise SourceError(f"no answer about {self.file.path}")

    with monkeypatch.context() as failing:
        failing.setattr(InputFile, "read_unchecked", no_answer)
        with pytest.raises(SourceError, match=r"^no answer about s3://stripes/lz4\.orc$"):
            next(there.read(split, ["id"]))
        failing.setattr(orc_file, "orc_tail", lambda file, size: None)  # so that pyarrow makes the requests
        monkeypatch.setattr(orc_file, "_REMOTE", LruCache(1 << 20))
        with pytest.raises(SourceError, match=r"^no answer about s3://stripes/lz4\.orc$"):
            next(there.read(split, ["id"]))
    monkeypatch.setattr(orc_file, "_REMOTE", LruCache(1 << 20))
    assert next(there.read(split, ["id"])).num_rows == split.rows
