"""Ranges of a file on another filesystem, which threads fetch, several at the same time, before they are read.

A request to an object store takes some 30 ms to begin, and its bytes arrive more slowly than they are decoded. So whoever
reads asks for all ranges that it needs at once, and for those that it needs next while it is at work.
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
    """Ranges of an open file that are here or on their way. Any thread may call any method."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._fetches: list[_Fetch] = []
        self._lock = threading.Lock()

    def fetch(self, ranges: Iterable[ByteRange]) -> None:
        """Ask for the bytes of ranges that nobody asked for before; SourceError for one that is not in the file."""
        size = self._file.size()
        with self._lock:
            missing = [part for part in ranges if part.size and self._fetch_of(part) is None]
            for part in missing:
                if min(part) < 0 or part.end > size:
                    raise SourceError(
                        f"{self._file.file.path} has {size} bytes, and none from {part.start} to {part.end}"
                    )
            if missing:
                self._fetches.append(_Fetch(self._file, requests_for(missing)))

    def read_at(self, nbytes: int, offset: int) -> memoryview:
        """Wait for exactly this number of bytes of the planned version of the file, or raise SourceError.

        Bytes that nobody asked for are read now.
        """
        wanted = ByteRange(offset, nbytes)
        with self._lock:
            fetch = self._fetch_of(wanted)
        return memoryview(self._file.read_at(nbytes, offset)) if fetch is None else fetch.bytes_of(wanted)

    def as_file(self) -> pa.PythonFile:
        """A file for a reader of Arrow's; one reader, in one thread, may use it."""
        return pa.PythonFile(ReaderAsFile(self, self._file.size()), "r")

    def _fetch_of(self, wanted: ByteRange) -> _Fetch | None:
        return next((fetch for fetch in self._fetches if fetch.run_of(wanted)), None)


class _Run(NamedTuple):
    """Bytes that follow each other, and the requests for them, in their order."""

    range: ByteRange
    parts: Sequence[Future[bytes]]


class _Fetch:
    """Requests that were made at the same time. What they fetch is used when all have ended."""

    def __init__(self, file: InputFile, requests: Sequence[Sequence[ByteRange]]) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._left = sum(map(len, requests))
        self._is_counted = False
        self._runs = [
            _Run(
                ByteRange(parts[0].start, parts[-1].end - parts[0].start),
                [fetching_threads().submit(self._fetch, part) for part in parts],
            )
            for parts in requests
        ]

    def _fetch(self, part: ByteRange) -> bytes:
        """The bytes of one request. The last one to end asks if the file is as planned, so that readers need not."""
        try:
            data = self._file.read_unchecked(part.size, part.start)
        except SourceError:
            self._file.check_unchanged()  # as the reason may be that it is another one by now
            raise
        with self._lock:
            self._left -= 1
            is_last = self._left == 0
        if is_last or len(data) < part.size:
            self._file.check_unchanged()
        if len(data) < part.size:
            raise SourceError(
                f"{self._file.file.path} ends at byte {part.start + len(data)}, which is too early"
            )
        return data

    def run_of(self, wanted: ByteRange) -> _Run | None:
        return next((run for run in self._runs if run.range.holds(wanted)), None)

    def bytes_of(self, wanted: ByteRange) -> memoryview:
        fetched = [[part.result() for part in run.parts] for run in self._runs]
        self._count([len(data) for parts in fetched for data in parts])
        for run, parts in zip(self._runs, fetched, strict=True):
            if run.range.holds(wanted):
                return _slice(parts, wanted.start - run.range.start, wanted.size)
        raise AssertionError("asked for bytes of another fetch")

    def _count(self, sizes: Sequence[int]) -> None:
        """Count the requests for whoever is the first to use what they fetched."""
        with self._lock:
            is_counted, self._is_counted = self._is_counted, True
        if not is_counted:
            for size in sizes:
                count_read(size)


def _slice(parts: Sequence[bytes], start: int, size: int) -> memoryview:
    """Some bytes of parts that follow each other; copied only where they are in several."""
    pieces = []
    for part in parts:
        if start < len(part) and size > 0:
            piece = memoryview(part)[start : start + size]
            pieces.append(piece)
            size -= len(piece)
        start = max(start - len(part), 0)
    return pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))
