"""Reads the parts of an ORC file's tail that pyarrow does not expose: calendar, column statistics, positions of stripes.

An ORC file ends with metadata (statistics of stripes), footer, PostScript, and one byte with the PostScript's length. The
PostScript has the lengths of footer and metadata and their compression, so a reader parses the tail from the end.
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
    check_stripe_positions,
    check_types,
)
from kquery_spark.sources.orc.lengths import check_lengths
from kquery_spark.sources.prefetch.byte_ranges import ByteRange, ByteReader
from kquery_spark.types import names as t

_PROLEPTIC = 2
_NO_CODEC = 0
_LENGTH_STREAM, _ROW_INDEX_STREAM = 2, 6  # Stream.Kind
_VERSION_1_ENCODINGS = (0, 1)  # ColumnEncoding.Kind: DIRECT and DICTIONARY
_CODECS_OF_PYARROW = (3, 6)  # LZO and Brotli, which this module does not decompress
_MIN_WRITER_VERSION = 1  # HIVE-8732: maximum values in statistics of older writers may be wrong
END_BYTES = 64 << 10
"""Bytes at the end of a file that are read first. Usually they contain the whole tail."""

_DAMAGE_ERRORS = (DecodeError, IndexError, ValueError, OSError, zlib.error, pa.ArrowException)
# A bare LZ4 block does not state its decompressed size, which pyarrow would need. A frame does not need the size, so a
# block is wrapped in a frame with this header, which allows blocks of up to 4 MiB.
_LZ4_FRAME = bytes.fromhex("04224d18607073")


@dataclass(frozen=True)
class OrcCalendar:
    """How to interpret dates and timestamps of a file.

    proleptic: whether days before 1582-10-15 are in the proleptic Gregorian calendar; otherwise they are Julian days of the
    hybrid calendar. timestamps: smallest and largest UTC milliseconds by column, for columns with such statistics.
    """

    proleptic: bool
    timestamps: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Tail:
    """The parsed end of an ORC file.

    codec: the compression of its parts, a value of CompressionKind. metadata: the statistics of stripes; empty if the writer
    is so old that they may be wrong. nbytes: the length from the footer to the end of the file.
    """

    codec: int
    footer: pb.Footer
    metadata: pb.Metadata
    nbytes: int

    @property
    def stripe_rows(self) -> list[int]:
        """The number of rows of each stripe."""
        return [stripe.rows for stripe in self.footer.stripes]

    def ranges(self, column: str, dtype: pa.DataType) -> list[ColumnRange | None]:
        """Return the statistics of a column for each stripe; empty if there are none. dtype: Spark's type of the column."""
        rows, subtrees = self.stripe_rows, self._column_subtrees
        numbers = [first for name, first, _ in subtrees or () if name == column]
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
        """Return the type numbers of the root, the columns, and all types nested in them; None if the types are invalid."""
        subtrees = self._column_subtrees
        if subtrees is None:
            return None
        return {0, *(n for name, first, end in subtrees if name in columns for n in range(first, end))}

    @property
    def _column_subtrees(self) -> list[tuple[str, int, int]] | None:
        """The columns with their range of type numbers: (name, first, end), where end is exclusive.

        ORC numbers all types, including nested ones, in depth-first order, so a column and all types in it have consecutive
        numbers. Example: ``struct<a: int, b: array<struct<x: int, y: string>>, c: string>`` has the numbers root 0, a 1,
        b 2, b's elements 3, x 4, y 5, c 6. The root's subtypes are [1, 2, 6] and there are 7 types, which gives
        (a, 1, 2), (b, 2, 6), (c, 6, 7).
        """
        types = self.footer.types
        if not types or len(types[0].field_names) != len(types[0].subtypes):
            return None
        # A subtree ends where the next column's begins, and the last one at the end of the list.
        numbers = [*types[0].subtypes, len(types)]
        if numbers != sorted(numbers):
            return None
        return list(zip(types[0].field_names, numbers[:-1], numbers[1:], strict=True))

    @property
    def calendar(self) -> OrcCalendar | None:
        """How to interpret dates and timestamps; None if the footer is inconsistent."""
        try:
            return _calendar(self.footer)
        except (IndexError, ValueError):
            return None


def orc_tail(file: ByteReader, size: int) -> Tail | None:
    """Read the tail of a file of ``size`` bytes.

    Returns None for a codec that only pyarrow reads. Raises ValueError for a damaged tail.
    """
    try:
        end = bytes(file.read_at(min(END_BYTES, size), max(size - END_BYTES, 0)))
        length = end[-1] + 1  # of the PostScript and the length byte
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
        check_stripe_positions(footer, size - nbytes)
        return Tail(post.compression, footer, _metadata(metadata, post), nbytes - int(post.metadata_length))
    except _DAMAGE_ERRORS as error:
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
    low, high = _min_max(statistics, dtype)
    return ColumnRange(low, high, nulls)


def _min_max(statistics: pb.ColumnStatistics, dtype: pa.DataType) -> tuple[Any, Any]:
    """Return the smallest and the largest value; (None, None) if they are unknown or readers interpret them differently."""
    if t.is_integral(dtype):
        typed_statistics: Any = statistics.integers
    elif dtype == t.DATE:
        typed_statistics = statistics.dates
    elif dtype == t.STRING:
        typed_statistics = statistics.strings
    elif t.is_decimal(dtype):
        typed_statistics = statistics.decimals
    else:
        return None, None
    if not (typed_statistics.HasField("minimum") and typed_statistics.HasField("maximum")):
        return None, None
    low, high = typed_statistics.minimum, typed_statistics.maximum
    if dtype == t.DATE and low < GREGORIAN_START_DAY:
        return None, None
    if not t.is_decimal(dtype):
        return low, high
    try:
        return Decimal(low.decode()), Decimal(high.decode())
    except (InvalidOperation, UnicodeDecodeError):
        return None, None


def stripe_footer(file: ByteReader, tail: Tail, stripe: int) -> pb.StripeFooter:
    """Read and check a stripe's footer; raises ValueError if it is damaged."""
    information = tail.footer.stripes[stripe]
    position = stripe_footer_range(information)
    try:
        data = bytes(file.read_at(position.size, position.start))
        footer = pb.StripeFooter.FromString(_decompressed(data, tail.codec))
        check_stripe(information, footer, len(tail.footer.types))
    except _DAMAGE_ERRORS as error:
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
        is_checked = stream.kind == _LENGTH_STREAM or (with_index and stream.kind == _ROW_INDEX_STREAM)
        if is_checked and (numbers is None or stream.column in numbers):
            try:
                data = _decompressed(bytes(file.read_at(stream.length, start)), tail.codec)
                if stream.kind == _ROW_INDEX_STREAM:
                    pb.RowIndex.FromString(data)
                else:
                    encoding = footer.encodings[stream.column].kind
                    check_lengths(data, is_version_1=encoding in _VERSION_1_ENCODINGS)
            except _DAMAGE_ERRORS as error:
                raise ValueError(f"column {stream.column} of stripe {stripe} is damaged: {error}") from None
        start += stream.length


def stripe_footer_range(stripe: pb.StripeInformation) -> ByteRange:
    """Return the position of a stripe's footer, which follows its streams."""
    return ByteRange(stripe.offset + stripe.index_length + stripe.data_length, stripe.footer_length)


def _calendar(footer: pb.Footer) -> OrcCalendar:
    ranges: dict[str, tuple[int, int]] = {}
    root = footer.types[0]
    for name, column in zip(root.field_names, root.subtypes, strict=True):
        if column < len(footer.statistics):
            timestamps = footer.statistics[column].timestamps
            if timestamps.HasField("minimum_utc") and timestamps.HasField("maximum_utc"):
                ranges[name] = timestamps.minimum_utc, timestamps.maximum_utc
    return OrcCalendar(footer.calendar == _PROLEPTIC, ranges)


def _decompressed(data: bytes, codec: int) -> bytes:
    """Decompress a sequence of chunks.

    A chunk begins with a three-byte little-endian header: the lowest bit is set if the chunk is stored uncompressed, the
    other 23 bits are its length.
    """
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
        parts.append(chunk if header & 1 else _decompressed_chunk(chunk, codec))
    return b"".join(parts)


def _decompressed_chunk(chunk: bytes, codec: int) -> bytes:
    """Decompress one chunk. The size of the result is bounded, because a damaged chunk may expand to gigabytes."""
    match codec:
        case 1:
            inflated = zlib.decompressobj(-15)
            data = inflated.decompress(chunk, MAX_BLOCK_BYTES)
            if not inflated.eof:
                raise ValueError("a compressed chunk is incomplete or too large")
            return data
        case 2:
            length = _snappy_length(chunk)
            if length > MAX_BLOCK_BYTES:
                raise ValueError(f"a compressed chunk has {length} bytes")
            return bytes(pa.decompress(chunk, length, codec="snappy", asbytes=True))
        case 4:
            framed = b"".join((_LZ4_FRAME, len(chunk).to_bytes(4, "little"), chunk, bytes(4)))
            return _read_bounded(framed, "lz4")
        case 5:
            return _read_bounded(chunk, "zstd")
    raise ValueError(f"the codec {codec} is unknown")


def _read_bounded(compressed: bytes, codec: str) -> bytes:
    """Decompress a chunk; raises ValueError if it expands to more than MAX_BLOCK_BYTES."""
    data = bytes(pa.CompressedInputStream(pa.BufferReader(compressed), codec).read(MAX_BLOCK_BYTES + 1))
    if len(data) > MAX_BLOCK_BYTES:
        raise ValueError(f"a compressed chunk has more than {MAX_BLOCK_BYTES} bytes")
    return data


def _snappy_length(snappy: bytes) -> int:
    """Return the decompressed length of a Snappy block, which is the varint at its start."""
    value = shift = 0
    for byte in snappy:
        value |= (byte & 127) << shift
        if byte < 128:
            return value
        shift += 7
    raise ValueError("a Snappy block has no length")
