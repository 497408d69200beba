"""Ranges of files on other filesystems are fetched by several requests at once, and what is found in the background."""

from __future__ import annotations

import threading
import time
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kquery_spark.errors import SourceError
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.prefetch import byte_ranges
from kquery_spark.sources.prefetch.byte_ranges import ByteRange, requests_for
from kquery_spark.sources.prefetch.fetched_ranges import FetchedRanges
from kquery_spark.sources.prefetch.fetching import InBackground
from kquery_spark.sources.prefetch.read_counts import count_read, read_counts

CONTENT = bytes(i * 7 % 251 for i in range(10_000))


class Far:
    """A file whose reads can be made to wait for each other."""

    def __init__(self, at_once: int = 1, changes: str = "", content: bytes = CONTENT) -> None:
        self.file = DataFile("s3://b/far", len(CONTENT), 0)
        self.content = content
        self.changes = changes
        self.read: list[ByteRange] = []
        self.checks = 0
        self._barrier = threading.Barrier(at_once)

    def read_unchecked(self, nbytes: int, offset: int) -> bytes:
        self.read.append(ByteRange(offset, nbytes))
        self._barrier.wait(20)
        return self.content[offset : offset + nbytes]

    def read_at(self, nbytes: int, offset: int) -> bytes:
        return self.read_unchecked(nbytes, offset)

    def size(self) -> int:
        return len(CONTENT)

    def check_unchanged(self) -> None:
        self.checks += 1
        if self.changes:
            raise SourceError(self.changes)


def ranges_of(file: Far) -> FetchedRanges:
    return FetchedRanges(file)  # type: ignore[arg-type]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_ranges, "MAX_GAP_BYTES", 10)
    monkeypatch.setattr(byte_ranges, "MAX_REQUEST_BYTES", 100)


@pytest.mark.usefixtures("small")
def test_near_ranges_are_one_request_and_large_ones_several():
    ranges = [ByteRange(500, 250), ByteRange(0, 20), ByteRange(30, 20), ByteRange(61, 5), ByteRange(40, 3)]
    assert requests_for(ranges) == [
        [ByteRange(0, 50)],
        [ByteRange(61, 5)],
        [ByteRange(500, 100), ByteRange(600, 100), ByteRange(700, 50)],
    ]
    assert requests_for([]) == []


@pytest.mark.usefixtures("small")
def test_requests_hold_what_was_asked_for_once():
    numbers = np.random.default_rng(5)
    for _ in range(200):
        ranges = [ByteRange(int(a), int(n)) for a, n in numbers.integers(1, 400, (numbers.integers(1, 8), 2))]
        runs = requests_for(ranges)
        for run in runs:
            assert all(a.end == b.start for a, b in pairwise(run))
            assert all(0 < part.size <= 100 for part in run)
        whole = [ByteRange(run[0].start, run[-1].end - run[0].start) for run in runs]
        assert all(b.start - a.end > 10 for a, b in pairwise(whole))
        assert all(any(run.contains(part) for run in whole) for part in ranges)


@pytest.mark.usefixtures("small")
def test_ranges_are_fetched_at_the_same_time_and_once():
    file = Far(at_once=5)  # each request waits for the others
    fetched = ranges_of(file)
    fetched.fetch([ByteRange(0, 250), ByteRange(1000, 50), ByteRange(2000, 5)])
    fetched.fetch([ByteRange(10, 100), ByteRange(1000, 50)])
    for start, size in [(0, 250), (5, 10), (90, 20), (95, 150), (1000, 50), (1049, 1), (2000, 5)]:
        assert bytes(fetched.read_at(size, start)) == CONTENT[start : start + size]
    assert bytes(fetched.read_at(0, 0)) == b""
    assert sorted(file.read) == [(0, 100), (100, 100), (200, 50), (1000, 50), (2000, 5)]
    assert file.checks == 1


def test_requests_are_counted_for_who_reads_first():
    fetched = ranges_of(Far())
    fetched.fetch([ByteRange(0, 250)])
    before = read_counts()
    fetched.read_at(10, 100)
    fetched.read_at(10, 200)
    assert read_counts().since(before) == (250, 1)


def test_unrequested_bytes_are_read_now():
    file = Far()
    fetched = ranges_of(file)
    fetched.fetch([ByteRange(0, 250)])
    assert bytes(fetched.read_at(100, 200)) == CONTENT[200:300]
    assert (200, 100) in file.read
    fetched.fetch([ByteRange(700, 0)])
    assert bytes(fetched.read_at(0, 700)) == b""


@pytest.mark.parametrize(
    "part", [ByteRange(9_990, 11), ByteRange(-1, 5), ByteRange(5, -1), ByteRange(1 << 60, 4)]
)
def test_ranges_outside_of_the_file_are_errors(part):
    file = Far()
    with pytest.raises(
        SourceError, match=f"far has only 10000 bytes, but bytes {part.start} to {part.end} are needed"
    ):
        ranges_of(file).fetch([ByteRange(0, 1), part])
    assert not file.read


def test_a_file_that_ends_too_early_or_changed_is_an_error():
    fetched = ranges_of(Far(content=CONTENT[:100]))
    fetched.fetch([ByteRange(50, 100)])
    with pytest.raises(SourceError, match="far ends at byte 100, which is too early"):
        fetched.read_at(10, 50)
    fetched = ranges_of(Far(changes="far has changed", content=CONTENT[:100]))
    fetched.fetch([ByteRange(50, 100)])
    with pytest.raises(SourceError, match="far has changed"):
        fetched.read_at(10, 50)


def test_what_fails_in_the_background_fails_where_it_is_asked_for():
    def find() -> Any:
        raise SourceError("no such file")

    with pytest.raises(SourceError, match="no such file"):
        InBackground(find).result()


def test_unrequested_data_is_disposed_of():
    disposed: list[int] = []
    begun, goes_on = threading.Semaphore(0), threading.Event()

    def find(number: int) -> int:
        begun.release()
        goes_on.wait(20)
        if number == 3:
            raise SourceError("no such file")
        return number

    for background in [InBackground(partial(find, number)) for number in (1, 2, 3)]:
        assert begun.acquire(timeout=20)
        background.abandon(disposed.append)  # waits for nothing
    assert not disposed
    goes_on.set()
    end = time.monotonic() + 20
    while len(disposed) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    assert sorted(disposed) == [1, 2]


def test_what_is_read_in_the_background_counts_once_where_it_is_asked_for():
    background = InBackground(partial(count_read, 100))
    before = read_counts()
    background.result()
    background.result()
    assert read_counts().since(before) == (100, 1)
