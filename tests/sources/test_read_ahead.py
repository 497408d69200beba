"""Text files on other filesystems are fetched ahead, and their blocks are those of local files."""

from __future__ import annotations

import bz2
import gzip
import threading
import time

import numpy as np
import pytest

from kquery_spark.errors import SourceError
from kquery_spark.sources import text
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.prefetch import read_ahead
from kquery_spark.sources.prefetch.byte_ranges import ByteRange
from kquery_spark.sources.prefetch.read_ahead import ReadAhead
from kquery_spark.sources.prefetch.read_counts import read_counts

LINES = b"".join(b"%d;%s\n" % (i, b"x" * (i * 7919 % 300)) for i in range(400))


class Far:
    """A file on another filesystem. at_once: how many reads wait for each other."""

    def __init__(
        self, content: bytes, path: str = "s3://b/far.csv", at_once: int = 1, change: str = ""
    ) -> None:
        self.file = DataFile(path, len(content), 0)
        self.content = content
        self.change = change
        self.read: list[ByteRange] = []
        self._barrier = threading.Barrier(at_once)

    def size(self) -> int:
        return self.file.size

    def read_unchecked(self, nbytes: int, offset: int) -> bytes:
        self.read.append(ByteRange(offset, nbytes))
        self._barrier.wait(20)
        return self.content[offset : offset + nbytes]

    def check_unchanged(self) -> None:
        if self.change:
            raise SourceError(self.change)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "_REQUEST_BYTES", 1000)
    monkeypatch.setattr(read_ahead, "_AHEAD_BYTES", 3000)
    monkeypatch.setattr(read_ahead, "_BEYOND_BYTES", 50)
    monkeypatch.setattr(text, "_PEEK_BYTES", 64)


def ahead(file: Far, start: int, end: int) -> ReadAhead:
    return ReadAhead(file, start, end)  # type: ignore[arg-type]


def far_blocks(monkeypatch: pytest.MonkeyPatch, far: Far, *given: object, **options: object) -> list[bytes]:
    monkeypatch.setattr(text, "shared_input", lambda file: far)
    return list(text.line_blocks(far.file, *given, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [700, 1000, 1001, 20_000, len(LINES)])
@pytest.mark.parametrize("block_bytes", [300, 1000, 1 << 20])
def test_blocks_are_those_of_a_local_file(tmp_path, monkeypatch, step, block_bytes):
    path = tmp_path / "t.csv"
    path.write_bytes(LINES)
    local = DataFile(str(path), len(LINES), path.stat().st_mtime_ns // 1_000_000)
    ranges = [(start, min(step, len(LINES) - start)) for start in range(0, len(LINES), step)]
    expected = [list(text.line_blocks(local, *part, block_bytes=block_bytes)) for part in ranges]
    assert b"".join(block for blocks in expected for block in blocks) == LINES
    actual = [far_blocks(monkeypatch, Far(LINES), *part, block_bytes=block_bytes) for part in ranges]
    assert actual == expected


@pytest.mark.parametrize(
    ("ending", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), ("", bytes)]
)
@pytest.mark.parametrize("whole", [True, False])
def test_files_that_are_read_from_their_start(monkeypatch, ending, compress, whole):
    far = Far(compress(LINES), f"s3://b/far.csv{ending}")
    blocks = far_blocks(monkeypatch, far, 0, far.file.size, whole=whole, block_bytes=2000)
    assert b"".join(blocks) == LINES
    assert sum(part.size for part in far.read) == far.file.size


def test_some_requests_are_on_their_way_at_once():
    far = Far(LINES, at_once=3)
    reader = ahead(far, 0, 3000)
    assert reader.read_at(3000, 0) == LINES[:3000]
    assert sorted(far.read) == [(0, 1000), (1000, 1000), (2000, 1000)]


def test_what_is_ahead_is_bounded_and_what_is_behind_is_let_go():
    far = Far(LINES)
    reader = ahead(far, 0, len(LINES))
    for at in range(0, len(LINES), 500):
        before = read_counts()
        assert reader.read_at(500, at) == LINES[at : at + 500]
        assert read_counts().since(before).reads <= 1
        assert max(part.end for part in far.read) <= min(at + 500 + 3000 + 1000, len(LINES))
        reader.forget(at + 500)
        assert all(request.part.end > at + 500 for request in reader._requests)
    assert sum(part.size for part in far.read) == len(LINES)


def test_only_what_is_needed_is_read_beyond_the_end():
    far = Far(LINES)
    reader = ahead(far, 0, 1500)
    assert reader.read_at(64, 1490) == LINES[1490:1554]
    end = time.monotonic() + 20
    while len(far.read) < 3 and time.monotonic() < end:
        time.sleep(0.01)
    assert sorted(far.read) == [(0, 1000), (1000, 500), (1500, 54)]
    assert reader.read_at(100, len(LINES) - 10) == LINES[-10:]


def test_a_reader_that_is_closed_asks_for_no_more():
    far = Far(LINES)
    reader = ahead(far, 0, len(LINES))
    reader.read_at(10, 0)
    reader.close()
    made = len(far.read)
    time.sleep(0.05)
    assert len(far.read) <= max(made, 4)


def test_a_file_that_ends_too_early_or_changed_is_an_error(monkeypatch):
    far = Far(LINES)
    far.content = LINES[:1500]
    with pytest.raises(SourceError, match=r"far\.csv ends at byte 1500, which is too early"):
        far_blocks(monkeypatch, far, 0, far.file.size)
    far.change = "far has changed"
    with pytest.raises(SourceError, match="far has changed"):
        far_blocks(monkeypatch, far, 0, far.file.size)


def test_random_reads():
    numbers = np.random.default_rng(1)
    for _ in range(50):
        start = int(numbers.integers(0, len(LINES)))
        reader = ahead(Far(LINES), start, int(numbers.integers(start, len(LINES) + 1)))
        at = start
        while at < len(LINES):
            nbytes = int(numbers.integers(1, 4000))
            assert reader.read_at(nbytes, at) == LINES[at : at + nbytes]
            at += int(numbers.integers(1, nbytes + 1))
            reader.forget(at)
