"""What an ORC file's tail says that pyarrow does not: its days' calendar, the ranges of columns, where stripes lie.

A file ends with a PostScript, which gives the footer's position and its compression.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from kquery_spark.sources import orc_footer_pb2 as pb
from kquery_spark.sources.base import ColumnRange
from kquery_spark.sources.hybrid_calendar import GREGORIAN_START_DAY
from kquery_spark.sources.orc.checks import (
    MAX_BLOCK_BYTES,
    check_post_script,
    check_stripe,
    check_stripe_places,
    check_types,
)
from kquery_spark.sources.orc.lengths import check_lengths
from kquery_spark.sources.prefetch.byte_ranges import ByteRange, ByteReader
from kquery_spark.types import names as t

_PROLEPTIC = 2
_NO_CODEC = 0
_LENGTH, _ROW_INDEX = 2, 6  # Stream.Kind
_VERSION_1_ENCODINGS = (0, 1)  # ColumnEncoding.Kind: DIRECT and DICTIONARY
_CODECS_OF_PYARROW = (3, 6)  # LZO and Brotli
_MIN_WRITER_VERSION = 1  # HIVE-8732: the highest values in statistics of writers before may be wrong
END_BYTES = 64 << 10
"""Of the end of a file, which mostly has all of its tail."""

_DAMAGED = (DecodeError, IndexError, ValueError, OSError, zlib.error, pa.ArrowException)
# A bare LZ4 block does not say how long it will be, a frame need not: the header of one with blocks of up to 4 MiB.
_LZ4_FRAME = bytes.fromhex("04224d18607073")


@dataclass(frozen=True)
class OrcFacts:
    """proleptic: days before 1582-10-15 are Gregorian, too. timestamps: lowest and highest milliseconds by column."""

    proleptic: bool
    timestamps: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Tail:
    """The end of an ORC file. codec: by which its parts are compressed. nbytes: from the footer to the end of the file.

    metadata: the statistics of stripes; empty where the writer is so old that they may be wrong.
    """

    codec: int
    footer: pb.Footer
    metadata: pb.Metadata
    nbytes: int

    @property
    def stripe_rows(self) -> list[int]:
        """How many rows each stripe has."""
        return [stripe.rows for stripe in self.footer.stripes]

    def ranges(self, column: str, dtype: pa.DataType) -> list[ColumnRange | None]:
        """Statistics of a column for each stripe, or nothing. dtype: Spark's type of the column."""
        rows, spans = self.stripe_rows, self._spans
        numbers = [first for name, first, _ in spans or () if name == column]
        if len(numbers) != 1 or len(self.metadata.stripes) != len(rows):
            return []
        (number,) = numbers
        if any(number >= len(stripe.columns) for stripe in self.metadata.stripes):
            return []
        return [
            _range(stripe.columns[number], count, dtype)
            for stripe, count in zip(self.metadata.stripes, rows, strict=True)
        ]

    def numbers(self, columns: Sequence[str]) -> set[int] | None:
        """The numbers of columns, of all that is in them and of the root; None where types contradict each other."""
        spans = self._spans
        if spans is None:
            return None
        return {0, *(number for name, first, end in spans if name in columns for number in range(first, end))}

    @property
    def _spans(self) -> list[tuple[str, int, int]] | None:
        """The columns with the first of their numbers, and the one behind the last: numbers are in depth-first order."""
        types = self.footer.types
        if not types or len(types[0].field_names) != len(types[0].subtypes):
            return None
        numbers = [*types[0].subtypes, len(types)]
        if numbers != sorted(numbers):
            return None
        return list(zip(types[0].field_names, numbers[:-1], numbers[1:], strict=True))

    @property
    def facts(self) -> OrcFacts | None:
        """What it says of dates and times; None where it contradicts itself."""
        try:
            return _facts(self.footer)
        except (IndexError, ValueError):
            return None


def orc_tail(file: ByteReader, size: int) -> Tail | None:
    """The tail of a file with this number of bytes; None for a codec that only pyarrow reads, ValueError for damage."""
    try:
        end = bytes(file.read_at(min(END_BYTES, size), max(size - END_BYTES, 0)))
        length = end[-1] + 1
        post = pb.PostScript.FromString(end[-length:-1])
        nbytes = int(post.metadata_length) + int(post.footer_length) + length
        if not length <= nbytes <= size:
            raise ValueError(f"its tail has {nbytes} of {size} bytes")
        check_post_script(post)
        if post.compression in _CODECS_OF_PYARROW:
            return None
        if nbytes > len(end):
            end = bytes(file.read_at(nbytes, size - nbytes))
        parts = end[len(end) - nbytes : len(end) - length]
        metadata, data = parts[: post.metadata_length], parts[post.metadata_length :]
        footer = pb.Footer.FromString(_decompressed(data, post.compression))
        check_types(footer.types)
        check_stripe_places(footer, size - nbytes)
        return Tail(post.compression, footer, _metadata(metadata, post), nbytes - int(post.metadata_length))
    except _DAMAGED as error:
        raise ValueError(f"its tail is damaged: {error}") from None


def _metadata(data: bytes, post: pb.PostScript) -> pb.Metadata:
    if post.writer_version < _MIN_WRITER_VERSION:
        return pb.Metadata()
    return pb.Metadata.FromString(_decompressed(data, post.compression))


def _range(statistics: pb.ColumnStatistics, rows: int, dtype: pa.DataType) -> ColumnRange | None:
    nulls = rows - statistics.values if statistics.HasField("values") else None
    if nulls is not None and (
        nulls < 0 or (statistics.HasField("has_null") and statistics.has_null != (nulls > 0))
    ):
        return None
    low, high = _ends(statistics, dtype)
    return ColumnRange(low, high, nulls)


def _ends(statistics: pb.ColumnStatistics, dtype: pa.DataType) -> tuple[Any, Any]:
    """The smallest and the largest value; None, None where they are not known, or readers may not agree about them."""
    if t.is_integral(dtype):
        known: Any = statistics.integers
    elif dtype == t.DATE:
        known = statistics.dates
    elif dtype == t.STRING:
        known = statistics.texts
    elif t.is_decimal(dtype):
        known = statistics.decimals
    else:
        return None, None
    if not (known.HasField("minimum") and known.HasField("maximum")):
        return None, None
    low, high = known.minimum, known.maximum
    if dtype == t.DATE and low < GREGORIAN_START_DAY:
        return None, None
    if not t.is_decimal(dtype):
        return low, high
    try:
        return Decimal(low.decode()), Decimal(high.decode())
    except (InvalidOperation, UnicodeDecodeError):
        return None, None


def stripe_footer(file: ByteReader, tail: Tail, stripe: int) -> pb.StripeFooter:
    """A stripe's footer, or ValueError where it is damaged."""
    described = tail.footer.stripes[stripe]
    place = footer_of_stripe(described)
    try:
        data = bytes(file.read_at(place.size, place.start))
        footer = pb.StripeFooter.FromString(_decompressed(data, tail.codec))
        check_stripe(described, footer, len(tail.footer.types))
    except _DAMAGED as error:
        raise ValueError(f"the footer of stripe {stripe} is damaged: {error}") from None
    return footer


def check_columns_of_stripe(
    file: ByteReader,
    tail: Tail,
    stripe: int,
    footer: pb.StripeFooter,
    columns: Sequence[str],
    *,
    with_index: bool,
) -> None:
    """Check columns of a stripe; ValueError for damaged ones.

    Checks the lengths of strings, lists, and maps, which ORC's C++ library trusts. with_index: also parse the row indexes,
    as Spark's reader does if it filters rows (``StripePlanner.readRowIndex``).
    """
    numbers = tail.numbers(columns)
    start = tail.footer.stripes[stripe].offset
    for stream in footer.streams:
        is_checked = stream.kind == _LENGTH or (with_index and stream.kind == _ROW_INDEX)
        if is_checked and (numbers is None or stream.column in numbers):
            try:
                data = _decompressed(bytes(file.read_at(stream.length, start)), tail.codec)
                if stream.kind == _ROW_INDEX:
                    pb.RowIndex.FromString(data)
                else:
                    encoding = footer.encodings[stream.column].kind
                    check_lengths(data, is_version_1=encoding in _VERSION_1_ENCODINGS)
            except _DAMAGED as error:
                raise ValueError(f"column {stream.column} of stripe {stripe} is damaged: {error}") from None
        start += stream.length


def footer_of_stripe(stripe: pb.StripeInformation) -> ByteRange:
    """Where a stripe's footer lies, behind its streams."""
    return ByteRange(stripe.offset + stripe.index_length + stripe.data_length, stripe.footer_length)


def _facts(footer: pb.Footer) -> OrcFacts:
    ranges: dict[str, tuple[int, int]] = {}
    root = footer.types[0]
    for name, column in zip(root.field_names, root.subtypes, strict=True):
        if column < len(footer.statistics):
            timestamps = footer.statistics[column].timestamps
            if timestamps.HasField("minimum_utc") and timestamps.HasField("maximum_utc"):
                ranges[name] = timestamps.minimum_utc, timestamps.maximum_utc
    return OrcFacts(footer.calendar == _PROLEPTIC, ranges)


def _decompressed(data: bytes, codec: int) -> bytes:
    """Chunks of three bytes of header (length and whether the chunk is uncompressed) and their content."""
    if codec == _NO_CODEC:
        return data
    parts = []
    offset = 0
    while offset < len(data):
        header = int.from_bytes(data[offset : offset + 3], "little")
        end = offset + 3 + (header >> 1)
        if end > len(data):
            raise ValueError(f"a compressed chunk ends {end - len(data)} bytes behind its stream")
        chunk = data[offset + 3 : end]
        offset = end
        parts.append(chunk if header & 1 else _chunk(chunk, codec))
    return b"".join(parts)


def _chunk(chunk: bytes, codec: int) -> bytes:
    """The content of a compressed chunk, which is bounded because a damaged one may expand to gigabytes."""
    match codec:
        case 1:
            inflated = zlib.decompressobj(-15)
            data = inflated.decompress(chunk, MAX_BLOCK_BYTES)
            if not inflated.eof:
                raise ValueError("a compressed chunk has no end")
            return data
        case 2:
            length = _length(chunk)
            if length > MAX_BLOCK_BYTES:
                raise ValueError(f"a compressed chunk has {length} bytes")
            return bytes(pa.decompress(chunk, length, codec="snappy", asbytes=True))
        case 4:
            framed = b"".join((_LZ4_FRAME, len(chunk).to_bytes(4, "little"), chunk, bytes(4)))
            return _read_bounded(framed, "lz4")
        case 5:
            return _read_bounded(chunk, "zstd")
    raise ValueError(f"no codec {codec}")


def _read_bounded(compressed: bytes, codec: str) -> bytes:
    """Decompress a chunk; ValueError if it expands to more than a block may have."""
    data = bytes(pa.CompressedInputStream(pa.BufferReader(compressed), codec).read(MAX_BLOCK_BYTES + 1))
    if len(data) > MAX_BLOCK_BYTES:
        raise ValueError(f"a compressed chunk has more than {MAX_BLOCK_BYTES} bytes")
    return data


def _length(snappy: bytes) -> int:
    """How long a Snappy block is when decompressed: the number it begins with, seven bits to a byte."""
    value = shift = 0
    for byte in snappy:
        value |= (byte & 127) << shift
        if byte < 128:
            return value
        shift += 7
    raise ValueError("a Snappy block without a length")
