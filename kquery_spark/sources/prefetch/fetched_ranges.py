"""Fetches byte ranges of a file on another filesystem with concurrent requests, before they are read.

A request to an object store has a latency of about 30 ms, and its bytes arrive more slowly than they are decoded. So a
reader requests all ranges that it needs at the same time, and while it decodes them, those that it needs next.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

import pyarrow as pa

from kquery_spark.errors import SourceError
from kquery_spark.sources.input_file import InputFile
from kquery_spark.sources.prefetch.byte_ranges import ByteRange, ReaderAsFile, requests_for
from kquery_spark.sources.prefetch.fetching import fetching_threads
from kquery_spark.sources.prefetch.read_counts import count_read


class FetchedRanges:
    """Ranges of an open file that have arrived or are requested. Thread-safe."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._fetches: list[_Fetch] = []
        self._lock = threading.Lock()

    def fetch(self, ranges: Iterable[ByteRange]) -> None:
        """Request those of the ranges that are not requested yet; raises SourceError for a range outside of the file."""
        size = self._file.size()
        with self._lock:
            missing = [part for part in ranges if part.size and self._fetch_of(part) is None]
            for part in missing:
                if min(part) < 0 or part.end > size:
                    raise SourceError(
                        f"{self._file.file.path} has only {size} bytes, but bytes {part.start} to {part.end} are needed"
                    )
            if missing:
                self._fetches.append(_Fetch(self._file, requests_for(missing)))

    def read_at(self, nbytes: int, offset: int) -> memoryview:
        """Wait for exactly ``nbytes`` bytes of the planned version of the file, or raise SourceError.

        Bytes that were not requested are read now.
        """
        required = ByteRange(offset, nbytes)
        with self._lock:
            fetch = self._fetch_of(required)
        return memoryview(self._file.read_at(nbytes, offset)) if fetch is None else fetch.bytes_of(required)

    def as_file(self) -> pa.PythonFile:
        """Return a file object for one pyarrow reader in one thread."""
        return pa.PythonFile(ReaderAsFile(self, self._file.size()), "r")

    def _fetch_of(self, required: ByteRange) -> _Fetch | None:
        return next((fetch for fetch in self._fetches if fetch.run_of(required)), None)


class _Run(NamedTuple):
    """A range of consecutive bytes, and the requests for its parts, in their order."""

    range: ByteRange
    parts: Sequence[Future[bytes]]


class _Fetch:
    """A batch of requests that start together. Their bytes are used after all of them have ended.

    The check that the file has not changed takes a request of its own. So it is made once per batch, by the last request
    that ends: its result holds for all bytes that arrived before.
    """

    def __init__(self, file: InputFile, requests: Sequence[Sequence[ByteRange]]) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._unfinished = sum(map(len, requests))
        self._is_counted = False
        self._runs = [
            _Run(
                ByteRange(parts[0].start, parts[-1].end - parts[0].start),
                [fetching_threads().submit(self._fetch, part) for part in parts],
            )
            for parts in requests
        ]

    def _fetch(self, part: ByteRange) -> bytes:
        """Make one request. The last request to end checks that the file has not changed since planning."""
        try:
            data = self._file.read_unchecked(part.size, part.start)
        except SourceError:
            self._file.check_unchanged()  # the cause may be that the file has changed
            raise
        with self._lock:
            self._unfinished -= 1
            is_last = self._unfinished == 0
        if is_last or len(data) < part.size:
            self._file.check_unchanged()
        if len(data) < part.size:
            raise SourceError(
                f"{self._file.file.path} ends at byte {part.start + len(data)}, which is too early"
            )
        return data

    def run_of(self, required: ByteRange) -> _Run | None:
        return next((run for run in self._runs if run.range.contains(required)), None)

    def bytes_of(self, required: ByteRange) -> memoryview:
        fetched = [[part.result() for part in run.parts] for run in self._runs]
        self._count([len(data) for parts in fetched for data in parts])
        for run, parts in zip(self._runs, fetched, strict=True):
            if run.range.contains(required):
                return _slice(parts, required.start - run.range.start, required.size)
        raise AssertionError("the bytes belong to another fetch")

    def _count(self, sizes: Sequence[int]) -> None:
        """Count the requests for the first thread that uses their bytes, because counts are per thread."""
        with self._lock:
            is_counted, self._is_counted = self._is_counted, True
        if not is_counted:
            for size in sizes:
                count_read(size)


def _slice(parts: Sequence[bytes], start: int, size: int) -> memoryview:
    """Return some bytes of consecutive parts; copies only if they lie in several parts."""
    pieces = []
    for part in parts:
        if start < len(part) and size > 0:
            piece = memoryview(part)[start : start + size]
            pieces.append(piece)
            size -= len(piece)
        start = max(start - len(part), 0)
    return pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))
