"""An ORC file as pyarrow reads it; of one on another filesystem the streams of a stripe are fetched before.

pyarrow asks for the streams of a stripe one after the other, 128 KB at a time, which takes long where each request does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.orc as pa_orc

from kquery_spark.errors import SourceError
from kquery_spark.sources import orc_footer_pb2 as pb
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.files import check_unchanged, local_path
from kquery_spark.sources.input_file import InputFile, shared_input
from kquery_spark.sources.lru_cache import LruCache
from kquery_spark.sources.orc.footer import (
    END_BYTES,
    Tail,
    footer_of_stripe,
    orc_tail,
    stripe_footer,
)
from kquery_spark.sources.prefetch.byte_ranges import ByteRange, ReaderAsFile
from kquery_spark.sources.prefetch.fetched_pieces import FetchedPieces
from kquery_spark.sources.prefetch.fetching import Release

_INDEX_STREAMS = (6, 7, 8)  # Stream.Kind: row indexes and Bloom filters, which pyarrow does not read
_READER_BYTES = 16 << 10  # of a file's end, which pyarrow reads in the hope that it has the footer
_BYTES_OF_A_FILE, _TAIL_EXPANSION = 12 << 10, 8
_MAX_KEPT_BYTES = 64 << 20


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
    """An open file, and what pyarrow reads it from. checked: its bytes are known to be as planned."""

    def __init__(self, source: InputFile, data: Any, *, checked: bool = False) -> None:
        self._source = source
        self._checked = checked
        self._reader = source.opened_as("ORC", lambda: pa_orc.ORCFile(data), checked=checked)

    @property
    def schema(self) -> pa.Schema:
        """The columns as pyarrow reads them."""
        return self._reader.schema

    def content(self, tail: Tail | None) -> OrcContent:
        """What the file has, of which this is the tail."""
        reader = self._reader
        rows, stripes = int(reader.nrows), int(reader.nstripes)
        known = () if tail is None else tuple(tail.stripe_rows)
        if len(known) != stripes or sum(known) != rows:
            known = tuple(rows * (i + 1) // stripes - rows * i // stripes for i in range(stripes))
        return OrcContent(reader.schema, known, int(reader.content_length), tail)

    def read(self, stripe: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Columns of a stripe, at least one."""
        try:
            batch = self._reader.read_stripe(stripe, columns=list(columns))
        except (pa.ArrowException, OSError) as error:
            cause = self._source.change or error
            raise SourceError(f"cannot read stripe {stripe} of {self._source.file.path}: {cause}") from None
        if not self._checked:
            self._source.check_unchanged()
        return batch


class RemoteOrc:
    """A file on another filesystem. Any thread may call any method."""

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self._footers: dict[int, pb.StripeFooter | None] = {}
        self._pieces = FetchedPieces(file)
        source = shared_input(file)
        size = source.size()
        known = _KnownEnd(source, _end(size, END_BYTES))
        opened = OpenOrc(source, pa.PythonFile(ReaderAsFile(known, size), "r"), checked=True)
        self.content = opened.content(orc_tail(known, size))

    @property
    def schema(self) -> pa.Schema:
        """The columns as pyarrow reads them."""
        return self.content.schema

    @property
    def nbytes(self) -> int:
        """What it takes in memory, about."""
        return self.content.nbytes

    def hold(self, stripe: int, columns: Sequence[str]) -> Release:
        """Fetch columns of a stripe before they are read; gives what lets go of their bytes."""
        return self._pieces.hold(stripe, self._parts(stripe, columns))

    def read(self, stripe: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Columns of a stripe, at least one."""
        fetched = self._pieces.of(stripe, self._parts(stripe, columns))
        return OpenOrc(shared_input(self._file), fetched.as_file(), checked=True).read(stripe, columns)

    def _parts(self, stripe: int, columns: Sequence[str]) -> list[ByteRange]:
        """What pyarrow reads for columns of a stripe, as far as that can be told: the tail, streams, the stripe's footer."""
        footer, tail = self._footer(stripe), self.content.tail
        numbers = None if tail is None else tail.numbers(columns)
        if tail is None or footer is None or numbers is None:
            return []
        place = tail.footer.stripes[stripe]
        streams = _streams(footer, place.offset, numbers)
        end = _end(self._file.size, max(tail.nbytes, _READER_BYTES))
        return [end, *streams, footer_of_stripe(place)]

    def _footer(self, stripe: int) -> pb.StripeFooter | None:
        if stripe not in self._footers:
            source, tail = shared_input(self._file), self.content.tail
            self._footers[stripe] = None if tail is None else stripe_footer(source, tail, stripe)
        return self._footers[stripe]


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
        content = OpenOrc(source, source.native).content(orc_tail(source, source.size()))
    _CONTENTS.put(file, content)
    return content


@contextmanager
def open_orc(file: DataFile) -> Iterator[OpenOrc | RemoteOrc]:
    """The file, which is open inside of the block."""
    remote = remote_orc(file)
    if remote is not None:
        yield remote
        return
    with InputFile(file) as source:
        yield OpenOrc(source, source.native)


class _KnownEnd:
    """A file of which the end is here, for reads that begin in it."""

    def __init__(self, source: InputFile, end: ByteRange) -> None:
        self._source = source
        self._end = end
        self._data = source.read_at(end.size, end.start)

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """As of the file."""
        if offset < self._end.start:
            return self._source.read_at(nbytes, offset)
        return self._data[offset - self._end.start : offset - self._end.start + nbytes]


def _end(size: int, nbytes: int) -> ByteRange:
    """The last bytes of a file."""
    return ByteRange(max(size - nbytes, 0), min(size, nbytes))


def _streams(footer: pb.StripeFooter, start: int, numbers: set[int]) -> Iterator[ByteRange]:
    """The streams of values of columns in a stripe, of which all streams lie one behind the other."""
    for stream in footer.streams:
        if stream.column in numbers and stream.kind not in _INDEX_STREAMS:
            yield ByteRange(start, stream.length)
        start += stream.length
