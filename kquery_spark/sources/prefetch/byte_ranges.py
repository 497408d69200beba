"""Byte ranges of a file, their readers, and the requests that fetch them from a remote filesystem."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple, Protocol

MAX_GAP_BYTES = 1 << 20
"""A request takes longer to begin (some 30 ms) than these bytes take to arrive, so it is better to fetch them, too."""

MAX_REQUEST_BYTES = 16 << 20
"""Stores serve one request at 50 to 100 MB/s, and several at the same time each as fast."""


class ByteReader(Protocol):
    """Something whose bytes are read by position."""

    def read_at(self, nbytes: int, offset: int) -> bytes | memoryview:
        """Read exactly this number of bytes."""
        ...


class ReaderAsFile:
    """Bytes that are read by position as a file of Python's, for ``pyarrow.PythonFile``.

    failure: the error of the last ``read``, if it failed. ORC's C++ library replaces it by one that contains a traceback.
    """

    closed = False
    failure: Exception | None = None

    def __init__(self, reader: ByteReader, size: int) -> None:
        self._reader = reader
        self._size = size
        self._at = 0

    def read(self, nbytes: int) -> bytes | memoryview:
        """Up to so many bytes, fewer at the end."""
        try:
            data = self._reader.read_at(min(nbytes, self._size - self._at), self._at)
        except Exception as error:
            self.failure = error
            raise
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """As of a file."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        """The position."""
        return self._at

    def close(self) -> None:
        """Nothing is open."""


class KnownBytes:
    """A reader that serves some bytes from memory and the others from another reader. Any thread may use it.

    known: pairs of a position and the bytes from there on.
    """

    def __init__(self, reader: ByteReader, known: Iterable[tuple[int, bytes]]) -> None:
        self._reader = reader
        self._known = list(known)

    def read_at(self, nbytes: int, offset: int) -> bytes | memoryview:
        """Exactly this number of bytes."""
        for start, data in self._known:
            if start <= offset and offset + nbytes <= start + len(data):
                return memoryview(data)[offset - start : offset - start + nbytes]
        return self._reader.read_at(nbytes, offset)


class ByteRange(NamedTuple):
    """Bytes of a file."""

    start: int
    size: int

    @property
    def end(self) -> int:
        """Where the next byte is."""
        return self.start + self.size

    def holds(self, other: ByteRange) -> bool:
        """Whether all bytes of another range are in this one."""
        return self.start <= other.start and other.end <= self.end


def requests_for(ranges: Iterable[ByteRange]) -> list[list[ByteRange]]:
    """The requests that fetch all of these, none of which is empty: near ones are fetched at once, large ones in parts.

    One list for each run of bytes that is fetched whole, in the order of the file.
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
