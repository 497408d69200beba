"""Opens ORC files with pyarrow, and prefetches the streams of a stripe for files on other filesystems.

pyarrow reads the streams of a stripe one after the other, 128 KB at a time. That is slow on an object store, where each
request has a high latency. So this module first fetches the byte ranges that pyarrow will read, in few concurrent requests.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa
import pyarrow.orc as pa_orc

from kquery_spark.errors import SourceError
from kquery_spark.sources import orc_footer_pb2 as pb
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.files import check_unchanged, local_path
from kquery_spark.sources.input_file import InputFile, shared_input
from kquery_spark.sources.lru_cache import LruCache
from kquery_spark.sources.orc.checks import INDEX_STREAMS
from kquery_spark.sources.orc.footer import (
    END_BYTES,
    Tail,
    check_columns_of_stripe,
    orc_tail,
    stripe_footer,
    stripe_footer_range,
)
from kquery_spark.sources.prefetch import byte_ranges
from kquery_spark.sources.prefetch.byte_ranges import ByteRange, ByteReader, KnownBytes, ReaderAsFile
from kquery_spark.sources.prefetch.fetched_pieces import FetchedPieces
from kquery_spark.sources.prefetch.fetched_ranges import FetchedRanges
from kquery_spark.sources.prefetch.fetching import Release, nothing_to_release

# Estimate of the memory of an open file: a constant, and the size of the parsed tail as a multiple of its encoded size.
_OPEN_FILE_BYTES, _TAIL_EXPANSION = 12 << 10, 8
_CACHE_BYTES = 64 << 20
_SMALL_FILE_BYTES = 4 << 20
"""Files up to this size are fetched with one request, because two more requests would take longer than the transfer."""


class OrcContent(NamedTuple):
    """Metadata of a file.

    schema: pyarrow's schema. stripe_rows: the number of rows of each stripe. stored_bytes: the size of all stripes. tail:
    the parsed tail; None if only pyarrow reads its codec. Then ``stripe_rows`` assumes equal numbers of rows.
    """

    schema: pa.Schema
    stripe_rows: tuple[int, ...] = ()
    stored_bytes: int = 0
    tail: Tail | None = None

    @property
    def rows(self) -> int:
        """The number of rows of the file."""
        return sum(self.stripe_rows)

    @property
    def nbytes(self) -> int:
        """The estimated size in memory."""
        tail = 0 if self.tail is None else self.tail.nbytes + self.tail.metadata.ByteSize()
        return _OPEN_FILE_BYTES + _TAIL_EXPANSION * tail


class OpenOrc:
    """Reads stripes of an open file with pyarrow.

    data: the bytes of the file. A ``ReaderAsFile`` itself verifies that the file has not changed since planning. For other
    kinds, the file is checked after each read.
    """

    def __init__(self, source: InputFile, data: pa.NativeFile | ReaderAsFile) -> None:
        self._source = source
        self._data = data
        checked = isinstance(data, ReaderAsFile)
        file = pa.PythonFile(data, "r") if checked else data
        with self._original_errors():
            self._reader = source.open_reader("ORC", lambda: pa_orc.ORCFile(file), checked=checked)

    @property
    def schema(self) -> pa.Schema:
        """pyarrow's schema of the file."""
        return self._reader.schema

    def content(self, tail: Tail | None) -> OrcContent:
        """Return the metadata of the file. tail: the file's parsed tail."""
        reader = self._reader
        rows, stripes = int(reader.nrows), int(reader.nstripes)
        if tail is None:
            stripe_rows = [rows * (i + 1) // stripes - rows * i // stripes for i in range(stripes)]
        else:
            stripe_rows = tail.stripe_rows
            if len(stripe_rows) != stripes or sum(stripe_rows) != rows:
                raise SourceError(f"cannot read {self._source.file.path} as ORC: its tail is damaged")
        return OrcContent(reader.schema, tuple(stripe_rows), int(reader.content_length), tail)

    def read(self, stripe: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Read columns of a stripe, at least one."""
        with self._original_errors():
            try:
                batch = self._reader.read_stripe(stripe, columns=list(columns))
            except (pa.ArrowException, OSError) as error:
                cause = self._source.change or error
                raise SourceError(
                    f"cannot read stripe {stripe} of {self._source.file.path}: {cause}"
                ) from None
        if not isinstance(self._data, ReaderAsFile):
            self._source.check_unchanged()
        return batch

    @contextmanager
    def _original_errors(self) -> Iterator[None]:
        """Raise the original error of a failed read instead of the error that ORC's C++ library raises for it."""
        try:
            yield
        except SourceError:
            if isinstance(self._data, ReaderAsFile) and isinstance(self._data.failure, SourceError):
                raise self._data.failure from None
            raise


class LocalOrc:
    """An open local file. tail: None if only pyarrow reads the file's codec."""

    def __init__(self, source: InputFile, tail: Tail | None) -> None:
        self._source = source
        self._tail = tail
        self._opened = OpenOrc(source, source.native)

    @property
    def schema(self) -> pa.Schema:
        """pyarrow's schema of the file."""
        return self._opened.schema

    def read(self, stripe: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Read columns of a stripe, at least one."""
        if self._tail is not None:
            check_stripe_data(self._source, self._source, self._tail, stripe, columns, with_index=True)
        return self._opened.read(stripe, columns)


class RemoteOrc:
    """A file on another filesystem. Thread-safe.

    One request fetches the tail, which stays in memory. What a read of a stripe fetches depends on sizes: a small file is
    fetched whole; a small stripe of a larger file with one request; for a larger stripe, one request fetches its footer and
    further requests fetch the streams of the required columns.
    """

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self._pieces = FetchedPieces(file)
        self._footers: dict[int, bytes] = {}
        self._lock = threading.Lock()
        source = shared_input(file)
        size = source.size()
        self._end = _read_end(source, END_BYTES)
        tail = read_tail(source, self._end)
        if tail is not None and tail.nbytes > self._end.nbytes:
            self._end = _read_end(source, tail.nbytes)
        if not self._end.start:
            check_stripes(source, self._end, tail)
        self.content = OpenOrc(source, ReaderAsFile(self._end, size)).content(tail)

    @property
    def schema(self) -> pa.Schema:
        """pyarrow's schema of the file."""
        return self.content.schema

    @property
    def nbytes(self) -> int:
        """The estimated size in memory."""
        return self.content.nbytes + self._end.nbytes

    def hold(self, stripe: int, columns: Sequence[str]) -> Release:
        """Start to fetch columns of a stripe before they are read; returns a function that releases their bytes."""
        if self._file.size <= _SMALL_FILE_BYTES:
            self._whole_file()
            return nothing_to_release
        return self._pieces.hold(stripe, self._parts(stripe, columns))

    def read(self, stripe: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Read columns of a stripe, at least one."""
        source, tail = shared_input(self._file), self.content.tail
        try:
            data = self._end.with_earlier_bytes(self._fetched_stripe(stripe, columns))
            if tail is not None:
                position = stripe_footer_range(tail.footer.stripes[stripe])
                if stripe in self._footers:
                    data = KnownBytes(data, [(position.start, self._footers[stripe])])
                is_fetched_whole = self._file.size <= _SMALL_FILE_BYTES
                check_stripe_data(source, data, tail, stripe, columns, with_index=is_fetched_whole)
            return OpenOrc(source, ReaderAsFile(data, self._file.size)).read(stripe, columns)
        except SourceError:
            _SMALL_FILES.forget(self._file)  # a cached failed request would raise the same error again
            raise

    def _fetched_stripe(self, stripe: int, columns: Sequence[str]) -> FetchedRanges:
        if self._file.size <= _SMALL_FILE_BYTES:
            return self._whole_file()
        return self._pieces.fetched(stripe, self._parts(stripe, columns))

    def _whole_file(self) -> FetchedRanges:
        """Return the bytes of a small file, which may still be arriving."""
        with self._lock:
            fetched = _SMALL_FILES.get(self._file)
            if fetched is None:
                fetched = _SmallFile(shared_input(self._file))
                fetched.fetch([ByteRange(0, self._file.size)])
                _SMALL_FILES.put(self._file, fetched)
        return fetched

    def _parts(self, stripe: int, columns: Sequence[str]) -> list[ByteRange]:
        """Return the byte ranges that pyarrow reads for columns of a stripe; empty if they are unknown."""
        tail = self.content.tail
        numbers = None if tail is None else tail.numbers(columns)
        if tail is None or numbers is None:
            return []
        information = tail.footer.stripes[stripe]
        whole = ByteRange(information.offset, stripe_footer_range(information).end - information.offset)
        if whole.size <= byte_ranges.MAX_GAP_BYTES:
            return [whole]
        return list(_value_streams(self._footer(tail, stripe), information.offset, numbers))

    def _footer(self, tail: Tail, stripe: int) -> pb.StripeFooter:
        """Return the footer of a stripe that is not fetched as a whole."""
        source = shared_input(self._file)
        position = stripe_footer_range(tail.footer.stripes[stripe])
        if stripe not in self._footers:
            self._footers[stripe] = source.read_at(position.size, position.start)
        return read_stripe_footer(
            source, KnownBytes(source, [(position.start, self._footers[stripe])]), tail, stripe
        )


class _SmallFile(FetchedRanges):
    """A small file that is fetched as a whole."""

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return self._file.file.size


_SMALL_FILES: LruCache[DataFile, _SmallFile] = LruCache(_CACHE_BYTES)
_REMOTE: LruCache[DataFile, RemoteOrc] = LruCache(_CACHE_BYTES)
_CONTENTS: LruCache[DataFile, OrcContent] = LruCache(_CACHE_BYTES)  # of local files


def remote_orc(file: DataFile) -> RemoteOrc | None:
    """Return a file on another filesystem, from the process's cache if possible; None for a local file."""
    if local_path(file.path) is not None:
        return None
    cached = _REMOTE.get(file)
    if cached is None:
        cached = RemoteOrc(file)
        _REMOTE.put(file, cached)
    return cached


def orc_content(file: DataFile) -> OrcContent:
    """Return the metadata of a file, from the process's cache if the file has not changed since."""
    remote = remote_orc(file)
    if remote is not None:
        return remote.content
    cached = _CONTENTS.get(file)
    if cached is not None:
        check_unchanged(file)
        return cached
    with InputFile(file) as source:
        # The tail is checked before pyarrow opens the file, because pyarrow does not check it.
        tail = read_tail(source, source)
        check_stripes(source, source, tail)
        content = OpenOrc(source, source.native).content(tail)
    _CONTENTS.put(file, content)
    return content


@contextmanager
def open_orc(file: DataFile) -> Iterator[LocalOrc | RemoteOrc]:
    """Open a file for the duration of a ``with`` block."""
    remote = remote_orc(file)
    if remote is not None:
        yield remote
        return
    tail = orc_content(file).tail
    with InputFile(file) as source:
        yield LocalOrc(source, tail)


def read_tail(source: InputFile, data: ByteReader) -> Tail | None:
    """Read the tail of a file from ``data``; None for a codec that only pyarrow reads.

    Raises SourceError if the tail is damaged.
    """
    try:
        return orc_tail(data, source.size())
    except ValueError as error:
        raise SourceError(f"cannot read {source.file.path} as ORC: {error}") from None


def read_stripe_footer(source: InputFile, data: ByteReader, tail: Tail, stripe: int) -> pb.StripeFooter:
    """Read the footer of a stripe; raises SourceError if it is damaged."""
    try:
        return stripe_footer(data, tail, stripe)
    except ValueError as error:
        raise SourceError(f"cannot read {source.file.path} as ORC: {error}") from None


def check_stripe_data(
    source: InputFile, data: ByteReader, tail: Tail, stripe: int, columns: Sequence[str], *, with_index: bool
) -> None:
    """Check what ORC's C++ library does not check in columns of a stripe; SourceError for a damaged one.

    with_index: also check the row indexes. The engine does not use them, so it does not fetch them from other filesystems.
    """
    footer = read_stripe_footer(source, data, tail, stripe)
    try:
        check_columns_of_stripe(data, tail, stripe, footer, columns, with_index=with_index)
    except ValueError as error:
        raise SourceError(f"cannot read {source.file.path} as ORC: {error}") from None


def check_stripes(source: InputFile, data: ByteReader, tail: Tail | None) -> None:
    """Check the footers of all stripes. Spark reads them all, even those of stripes that it skips."""
    if tail is None:
        return
    for stripe in range(len(tail.footer.stripes)):
        read_stripe_footer(source, data, tail, stripe)


class _FileEnd:
    """Holds the last bytes of a file in memory and reads earlier bytes from the file."""

    def __init__(self, source: ByteReader, start: int, data: bytes) -> None:
        self.start = start
        self._source = source
        self._data = data

    @property
    def nbytes(self) -> int:
        """The number of bytes in memory."""
        return len(self._data)

    def with_earlier_bytes(self, reader: ByteReader) -> KnownBytes:
        """Return a reader of these bytes, and of earlier bytes from another reader."""
        return KnownBytes(reader, [(self.start, self._data)])

    def read_at(self, nbytes: int, offset: int) -> bytes | memoryview:
        """Read exactly ``nbytes`` bytes."""
        return self.with_earlier_bytes(self._source).read_at(nbytes, offset)


def _read_end(source: InputFile, nbytes: int) -> _FileEnd:
    """Fetch the last ``nbytes`` bytes of a file, or all bytes of a smaller file."""
    start = max(source.size() - nbytes, 0)
    return _FileEnd(source, start, source.read_at(source.size() - start, start))


def _value_streams(footer: pb.StripeFooter, start: int, numbers: set[int]) -> Iterator[ByteRange]:
    """Yield the positions of the streams of values of columns. The streams of a stripe are contiguous."""
    for stream in footer.streams:
        if stream.column in numbers and stream.kind not in INDEX_STREAMS:
            yield ByteRange(start, stream.length)
        start += stream.length
