"""What an ORC footer says that pyarrow does not: its days' calendar, the ranges of timestamp columns, where stripes lie.

A file ends with a PostScript, which gives the footer's position and its compression.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import pyarrow as pa
from google.protobuf.message import DecodeError

from kquery_spark.sources import orc_footer_pb2 as pb
from kquery_spark.sources.byte_ranges import ByteRange, ByteReader

_PROLEPTIC = 2
_NO_CODEC = 0
END_BYTES = 16 << 10
"""Of the end of a file, which mostly has all of its tail. pyarrow reads as many."""

_NOT_UNDERSTOOD = (DecodeError, IndexError, ValueError, OSError, zlib.error, pa.ArrowException)
# A bare LZ4 block does not say how long it will be, a frame need not: the header of one with blocks of up to 4 MiB.
_LZ4_FRAME = bytes.fromhex("04224d18607073")


@dataclass(frozen=True)
class OrcFacts:
    """proleptic: days before 1582-10-15 are Gregorian, too. timestamps: lowest and highest milliseconds by column."""

    proleptic: bool
    timestamps: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Tail:
    """The end of an ORC file. codec: by which its parts are compressed. nbytes: from the footer to the end of the file."""

    codec: int
    footer: pb.Footer
    nbytes: int

    @property
    def facts(self) -> OrcFacts | None:
        """What it says of dates and times; None where it contradicts itself."""
        try:
            return _facts(self.footer)
        except (IndexError, ValueError):
            return None


def orc_tail(file: ByteReader, size: int) -> Tail | None:
    """The tail of a file of so many bytes; None where it cannot be understood."""
    try:
        end = bytes(file.read_at(min(END_BYTES, size), max(size - END_BYTES, 0)))
        length = end[-1]
        post = pb.PostScript.FromString(end[-1 - length : -1])
        nbytes = int(post.footer_length) + length + 1
        if nbytes > len(end):
            end = bytes(file.read_at(nbytes, size - nbytes))
        footer = end[len(end) - nbytes : len(end) - length - 1]
        return Tail(post.compression, pb.Footer.FromString(_decompressed(footer, post.compression)), nbytes)
    except _NOT_UNDERSTOOD:
        return None


def stripe_footer(file: ByteReader, tail: Tail, stripe: int) -> pb.StripeFooter | None:
    """A stripe's footer; None where it cannot be understood."""
    try:
        place = footer_of_stripe(tail.footer.stripes[stripe])
        data = bytes(file.read_at(place.size, place.start))
        return pb.StripeFooter.FromString(_decompressed(data, tail.codec))
    except _NOT_UNDERSTOOD:
        return None


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
        chunk = data[offset + 3 : offset + 3 + (header >> 1)]
        offset += 3 + (header >> 1)
        parts.append(chunk if header & 1 else _chunk(chunk, codec))
    return b"".join(parts)


def _chunk(chunk: bytes, codec: int) -> bytes:
    match codec:
        case 1:
            return zlib.decompress(chunk, -15)
        case 2:
            return bytes(pa.decompress(chunk, _length(chunk), codec="snappy", asbytes=True))
        case 4:
            framed = b"".join((_LZ4_FRAME, len(chunk).to_bytes(4, "little"), chunk, bytes(4)))
            return bytes(pa.CompressedInputStream(pa.BufferReader(framed), "lz4").read())
        case 5:
            return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read())
    raise ValueError(f"no codec {codec}")


def _length(snappy: bytes) -> int:
    """How long a Snappy block is when decompressed: the number it begins with, seven bits to a byte."""
    value = shift = 0
    for byte in snappy:
        value |= (byte & 127) << shift
        if byte < 128:
            return value
        shift += 7
    raise ValueError("a Snappy block without a length")
