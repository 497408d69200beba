"""An ORC file as pyarrow reads it; of one on another filesystem the streams of a stripe are fetched before.

pyarrow asks for the streams of a stripe one after the other, 128 KB at a time, which takes long where each request does.
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
    check_lengths_of_stripe,
    footer_of_stripe,
    orc_tail,
    stripe_footer,
)
from kquery_spark.sources.prefetch import byte_ranges
from kquery_spark.sources.prefetch.byte_ranges import ByteRange, ByteReader, KnownBytes, ReaderAsFile
from kquery_spark.sources.prefetch.fetched_pieces import FetchedPieces
from kquery_spark.sources.prefetch.fetched_ranges import FetchedRanges
from kquery_spark.sources.prefetch.fetching import Release, nothing_to_release

_BYTES_OF_A_FILE, _TAIL_EXPANSION = 12 << 10, 8
_MAX_KEPT_BYTES = 64 << 20
_SMALL_FILE_BYTES = 4 << 20
"""A file of this size arrives in the time that two more requests take."""


class OrcContent(NamedTuple):
    """What a file has. schema: as pyarrow reads it. stripe_rows: rows of each stripe. stored_bytes: of all stripes.

    tail: None where it cannot be understood; rows are spread evenly over the stripes then.
    """

    schema: pa.Schema
    stripe_rows: tuple[int, ...] = ()
    stored_bytes: int = 0
    tail: Tail | None = None

    @property
    def rows(self) -> int:
        """Of the whole file."""
        return sum(self.stripe_rows)

    @property
    def nbytes(self) -> int:
        """What it takes in memory, about."""
        tail = 0 if self.tail is None else self.tail.nbytes + self.tail.metadata.ByteSize()
        return _BYTES_OF_A_FILE + _TAIL_EXPANSION * tail


class OpenOrc:
    """An open file that pyarrow reads.

    data: the bytes. Those of a ``ReaderAsFile`` are known to be as planned; after reads of others the file is checked.
    """

    def __init__(self, source: InputFile, data: pa.NativeFile | ReaderAsFile) -> None:
        self._source = source
        self._data = data
        checked = isinstance(data, ReaderAsFile)
        file = pa.PythonFile(data, "r") if checked else data
        with self._clear_errors():
            self._reader = source.open_reader("ORC", lambda: pa_orc.ORCFile(file), checked=checked)

    @property
    def schema(self) -> pa.Schema:
        """The columns as pyarrow reads them."""
        return self._reader.schema

    def content(self, tail: Tail | None) -> OrcContent:
        """What the file has, of which this is the tail."""
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
        """Columns of a stripe, at least one."""
        with self._clear_errors():
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
    def _clear_errors(self) -> Iterator[None]:
        """Raise the error of a read instead of what ORC's C++ library makes of it."""
        try:
            yield
        except SourceError:
            if isinstance(self._data, ReaderAsFile) and isinstance(self._data.failure, SourceError):
                raise self._data.failure from None
            raise


class LocalOrc:
    """An open file of this machine with its tail, which is None where only pyarrow reads the codec."""

    def __init__(self, source: InputFile, tail: Tail | None) -> None:
        self._source = source
        self._tail = tail
        self._opened = OpenOrc(source, source.native)

    @property
    def schema(self) -> pa.Schema:
        """The columns as pyarrow reads them."""
        return self._opened.schema

    def read(self, stripe: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Columns of a stripe, at least one."""
        if self._tail is not None:
            check_stripe_data(self._source, self._source, self._tail, stripe, columns)
        return self._opened.read(stripe, columns)


class RemoteOrc:
    """A file on another filesystem. Any thread may call any method.

    One request fetches the tail, which stays in memory. The first read of a stripe of a small file fetches the whole file.
    Of a larger file, one request fetches a small stripe. Of a larger stripe, one request fetches the footer and others fetch
    the streams of the columns.
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
        """The columns as pyarrow reads them."""
        return self.content.schema

    @property
    def nbytes(self) -> int:
        """What it takes in memory, about."""
        return self.content.nbytes + self._end.nbytes

    def hold(self, stripe: int, columns: Sequence[str]) -> Release:
        """Fetch columns of a stripe before they are read; gives what lets go of their bytes."""
        if self._file.size <= _SMALL_FILE_BYTES:
            self._whole_file()
            return nothing_to_release
        return self._pieces.hold(stripe, self._parts(stripe, columns))

    def read(self, stripe: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Columns of a stripe, at least one."""
        source, tail = shared_input(self._file), self.content.tail
        try:
            data = self._end.over(self._fetched(stripe, columns))
            if tail is not None:
                place = footer_of_stripe(tail.footer.stripes[stripe])
                if stripe in self._footers:
                    data = KnownBytes(data, [(place.start, self._footers[stripe])])
                check_stripe_data(source, data, tail, stripe, columns)
            return OpenOrc(source, ReaderAsFile(data, self._file.size)).read(stripe, columns)
        except SourceError:
            _SMALL_FILES.forget(self._file)  # it would repeat the error of its request
            raise

    def _fetched(self, stripe: int, columns: Sequence[str]) -> FetchedRanges:
        if self._file.size <= _SMALL_FILE_BYTES:
            return self._whole_file()
        return self._pieces.of(stripe, self._parts(stripe, columns))

    def _whole_file(self) -> FetchedRanges:
        """All bytes of a small file, on their way or here."""
        with self._lock:
            fetched = _SMALL_FILES.get(self._file)
            if fetched is None:
                fetched = _SmallFile(shared_input(self._file))
                fetched.fetch([ByteRange(0, self._file.size)])
                _SMALL_FILES.put(self._file, fetched)
        return fetched

    def _parts(self, stripe: int, columns: Sequence[str]) -> list[ByteRange]:
        """What pyarrow reads for columns of a stripe of a large file, as far as this is known."""
        tail = self.content.tail
        numbers = None if tail is None else tail.numbers(columns)
        if tail is None or numbers is None:
            return []
        place = tail.footer.stripes[stripe]
        whole = ByteRange(place.offset, footer_of_stripe(place).end - place.offset)
        if whole.size <= byte_ranges.MAX_GAP_BYTES:
            return [whole]
        return list(_streams(self._footer(tail, stripe), place.offset, numbers))

    def _footer(self, tail: Tail, stripe: int) -> pb.StripeFooter:
        """The footer of a stripe that is not fetched whole."""
        source = shared_input(self._file)
        place = footer_of_stripe(tail.footer.stripes[stripe])
        if stripe not in self._footers:
            self._footers[stripe] = source.read_at(place.size, place.start)
        return check_stripe_footer(
            source, KnownBytes(source, [(place.start, self._footers[stripe])]), tail, stripe
        )


class _SmallFile(FetchedRanges):
    """A file that is fetched whole."""

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self._file.file.size


_SMALL_FILES: LruCache[DataFile, _SmallFile] = LruCache(_MAX_KEPT_BYTES)
_REMOTE: LruCache[DataFile, RemoteOrc] = LruCache(_MAX_KEPT_BYTES)
_CONTENTS: LruCache[DataFile, OrcContent] = LruCache(_MAX_KEPT_BYTES)  # of files of this machine


def remote_orc(file: DataFile) -> RemoteOrc | None:
    """The file, from this process's cache; None for one of this machine."""
    if local_path(file.path) is not None:
        return None
    kept = _REMOTE.get(file)
    if kept is None:
        kept = RemoteOrc(file)
        _REMOTE.put(file, kept)
    return kept


def orc_content(file: DataFile) -> OrcContent:
    """What a file has, from this process's cache when it has not changed since."""
    remote = remote_orc(file)
    if remote is not None:
        return remote.content
    kept = _CONTENTS.get(file)
    if kept is not None:
        check_unchanged(file)
        return kept
    with InputFile(file) as source:
        tail = read_tail(source, source)  # before pyarrow, which trusts what a tail says
        check_stripes(source, source, tail)
        content = OpenOrc(source, source.native).content(tail)
    _CONTENTS.put(file, content)
    return content


@contextmanager
def open_orc(file: DataFile) -> Iterator[LocalOrc | RemoteOrc]:
    """The file, which is open inside of the block."""
    remote = remote_orc(file)
    if remote is not None:
        yield remote
        return
    tail = orc_content(file).tail
    with InputFile(file) as source:
        yield LocalOrc(source, tail)


def read_tail(source: InputFile, data: ByteReader) -> Tail | None:
    """The tail of a file with these bytes; None for a codec that only pyarrow reads, SourceError where it is damaged."""
    try:
        return orc_tail(data, source.size())
    except ValueError as error:
        raise SourceError(f"cannot read {source.file.path} as ORC: {error}") from None


def check_stripe_footer(source: InputFile, data: ByteReader, tail: Tail, stripe: int) -> pb.StripeFooter:
    """The footer of a stripe; SourceError where it is damaged."""
    try:
        return stripe_footer(data, tail, stripe)
    except ValueError as error:
        raise SourceError(f"cannot read {source.file.path} as ORC: {error}") from None


def check_stripe_data(
    source: InputFile, data: ByteReader, tail: Tail, stripe: int, columns: Sequence[str]
) -> None:
    """Check what ORC's C++ library trusts in columns of a stripe; SourceError for a damaged one."""
    footer = check_stripe_footer(source, data, tail, stripe)
    try:
        check_lengths_of_stripe(data, tail, stripe, footer, columns)
    except ValueError as error:
        raise SourceError(f"cannot read {source.file.path} as ORC: {error}") from None


def check_stripes(source: InputFile, data: ByteReader, tail: Tail | None) -> None:
    """Check the footers of all stripes, which Spark reads even where it skips their rows."""
    if tail is None:
        return
    for stripe in range(len(tail.footer.stripes)):
        check_stripe_footer(source, data, tail, stripe)


class _End:
    """The last bytes of a file, which are in memory; earlier ones are read from the file."""

    def __init__(self, source: ByteReader, start: int, data: bytes) -> None:
        self.start = start
        self._source = source
        self._data = data

    @property
    def nbytes(self) -> int:
        """The number of bytes in memory."""
        return len(self._data)

    def over(self, reader: ByteReader) -> KnownBytes:
        """These bytes, with earlier ones from another reader."""
        return KnownBytes(reader, [(self.start, self._data)])

    def read_at(self, nbytes: int, offset: int) -> bytes | memoryview:
        """Exactly this number of bytes."""
        return self.over(self._source).read_at(nbytes, offset)


def _read_end(source: InputFile, nbytes: int) -> _End:
    """Fetch the last bytes of a file, at most all."""
    start = max(source.size() - nbytes, 0)
    return _End(source, start, source.read_at(source.size() - start, start))


def _streams(footer: pb.StripeFooter, start: int, numbers: set[int]) -> Iterator[ByteRange]:
    """The streams of values of columns in a stripe, of which all streams lie one behind the other."""
    for stream in footer.streams:
        if stream.column in numbers and stream.kind not in INDEX_STREAMS:
            yield ByteRange(start, stream.length)
        start += stream.length
