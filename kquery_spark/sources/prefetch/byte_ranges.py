"""Defines byte ranges of a file, readers by position, and the requests that fetch ranges from a remote filesystem."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

MAX_GAP_BYTES = 1 << 20
"""Two ranges with a gap up to this size are fetched by one request, including the gap.

A request has a latency of about 30 ms, which is longer than the transfer of these bytes.
"""

MAX_REQUEST_BYTES = 16 << 20
"""Larger ranges are split into several requests, because stores serve each of several concurrent requests as fast as a
single one, at 50 to 100 MB/s."""


class ByteReader(Protocol):
    """A file or a buffer whose bytes are read by position."""

    def read_at(self, nbytes: int, offset: int) -> bytes | memoryview:
        """Read exactly ``nbytes`` bytes from ``offset``."""
        ...


def read_array(readers: Iterable[ByteReader], parts: Sequence[ByteRange]) -> npt.NDArray[np.uint8]:
    """Read each range with the reader at the same position, and concatenate the bytes. A single range is not copied."""
    data = [
        np.frombuffer(reader.read_at(part.size, part.start), np.uint8)
        for reader, part in zip(readers, parts, strict=True)
    ]
    return data[0] if len(data) == 1 else np.concatenate(data)


class ReaderAsFile:
    """Wraps a ``ByteReader`` as a Python file object, for ``pyarrow.PythonFile``.

    failure: the error of the last ``read``, if it failed. ORC's C++ library raises another error instead, which contains a
    traceback.
    """

    closed = False
    failure: Exception | None = None

    def __init__(self, reader: ByteReader, size: int) -> None:
        self._reader = reader
        self._size = size
        self._at = 0

    def read(self, nbytes: int) -> bytes | memoryview:
        """Read up to ``nbytes`` bytes from the current position; fewer at the end of the file."""
        try:
            data = self._reader.read_at(min(nbytes, self._size - self._at), self._at)
        except Exception as error:
            self.failure = error
            raise
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Change the current position."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        """Return the current position."""
        return self._at

    def close(self) -> None:
        """Do nothing: the owner of the reader closes it."""


class KnownBytes:
    """A reader that serves some bytes from memory, and all others from another reader. Thread-safe.

    known: pairs of a position and the bytes that begin there.
    """

    def __init__(self, reader: ByteReader, known: Iterable[tuple[int, bytes]]) -> None:
        self._reader = reader
        self._known = list(known)

    def read_at(self, nbytes: int, offset: int) -> bytes | memoryview:
        """Read exactly ``nbytes`` bytes from ``offset``."""
        for start, data in self._known:
            if start <= offset and offset + nbytes <= start + len(data):
                return memoryview(data)[offset - start : offset - start + nbytes]
        return self._reader.read_at(nbytes, offset)


class ByteRange(NamedTuple):
    """A range of consecutive bytes of a file."""

    start: int
    size: int

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self.start + self.size

    def contains(self, other: ByteRange) -> bool:
        """Return whether all bytes of another range are in this one."""
        return self.start <= other.start and other.end <= self.end


def requests_for(ranges: Iterable[ByteRange]) -> list[list[ByteRange]]:
    """Plan the requests that fetch a set of ranges, which must not be empty.

    First, ranges with small gaps are merged to runs. Then each run is split into requests of at most MAX_REQUEST_BYTES.
    Returns one list of requests per run, in the order of the file. Example in MiB: the ranges 0-2, 2.5-20 and 50-60 give the
    runs 0-20 (the gap of 0.5 is fetched, too) and 50-60, and so the requests [0-16, 16-20] and [50-60].
    """
    runs: list[ByteRange] = []
    for part in sorted(ranges):
        if runs and part.start - runs[-1].end <= MAX_GAP_BYTES:
            runs[-1] = ByteRange(runs[-1].start, max(runs[-1].end, part.end) - runs[-1].start)
        else:
            runs.append(part)
    return [
        [
            ByteRange(start, min(MAX_REQUEST_BYTES, run.end - start))
            for start in range(run.start, run.end, MAX_REQUEST_BYTES)
        ]
        for run in runs
    ]
