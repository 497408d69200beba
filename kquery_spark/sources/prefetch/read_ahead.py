"""Reads a file on another filesystem sequentially, as for CSV and JSON, and prefetches the bytes that follow."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import SourceError
from kquery_spark.sources.input_file import InputFile
from kquery_spark.sources.prefetch.byte_ranges import ByteRange, ReaderAsFile
from kquery_spark.sources.prefetch.fetching import InBackground
from kquery_spark.sources.prefetch.read_counts import count_read

_REQUEST_BYTES = 4 << 20
_AHEAD_BYTES = 24 << 20  # requested bytes after the position that is being read
_BEYOND_BYTES = 64 << 10  # size of a request after the expected end, for example for the rest of a line


class _Request(NamedTuple):
    part: ByteRange
    data: InBackground[bytes]


class ReadAhead:
    """Reads a file from ``start``, usually up to ``end``. Not thread-safe."""

    def __init__(self, file: InputFile, start: int, end: int) -> None:
        self._file = file
        self._size = file.size()
        self._end = min(end, self._size)
        self._requests: deque[_Request] = deque()
        self._requested = start
        self._request_up_to(start)

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """Read ``nbytes`` bytes of the planned version of the file, or fewer at its end.

        The bytes must not have been released by ``forget``.
        """
        stop = min(offset + nbytes, self._size)
        self._request_up_to(stop)
        pieces = []
        for request in self._requests:
            part = request.part
            if part.start < stop and offset < part.end:
                pieces.append(request.data.result()[max(offset - part.start, 0) : stop - part.start])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def forget(self, before: int) -> None:
        """Release the bytes before a position."""
        while self._requests and self._requests[0].part.end <= before:
            self._requests.popleft()

    def check_unchanged(self) -> None:
        """Do nothing: each request has checked that the file has not changed."""

    def stream(self) -> pa.PythonFile:
        """Return the whole file as a file object that can be read once, from start to end."""
        return pa.PythonFile(_Stream(self, self._size), "r")

    def close(self) -> None:
        """Cancel and release all requests."""
        while self._requests:
            self._requests.pop().data.abandon(lambda _: None)

    def _request_up_to(self, position: int) -> None:
        """Request all bytes before a position, and up to _AHEAD_BYTES after it."""
        while self._requested < min(position + _AHEAD_BYTES, self._end):
            self._request(min(_REQUEST_BYTES, self._end - self._requested))
        while self._requested < position:
            self._request(min(max(_BEYOND_BYTES, position - self._requested), self._size - self._requested))

    def _request(self, nbytes: int) -> None:
        part = ByteRange(self._requested, nbytes)
        self._requests.append(_Request(part, InBackground(partial(_fetch, self._file, part))))
        self._requested += nbytes


def _fetch(file: InputFile, part: ByteRange) -> bytes:
    try:
        data = file.read_unchecked(part.size, part.start)
    finally:
        file.check_unchanged()  # after errors, too, because their cause may be that the file has changed
    if len(data) < part.size:
        raise SourceError(f"{file.file.path} ends at byte {part.start + len(data)}, which is too early")
    count_read(len(data))
    return data


class _Stream(ReaderAsFile):
    """Releases bytes after they have been read."""

    def __init__(self, reader: ReadAhead, size: int) -> None:
        super().__init__(reader, size)
        self._forget = reader.forget

    @override
    def read(self, nbytes: int) -> bytes | memoryview:
        data = super().read(nbytes)
        self._forget(self._at)
        return data
