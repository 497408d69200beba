"""What an ORC footer says that pyarrow does not: the calendar of its days, and the range of each timestamp column.

A file ends with a PostScript, which gives the footer's position and its compression.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from kquery_spark.sources import orc_footer_pb2 as pb

_PROLEPTIC = 2
_NO_CODEC = 0
# A bare LZ4 block does not say how long it will be, a frame need not: the header of one with blocks of up to 4 MiB.
_LZ4_FRAME = bytes.fromhex("04224d18607073")


@dataclass(frozen=True)
class OrcFacts:
    """proleptic: days before 1582-10-15 are Gregorian, too. timestamps: lowest and highest milliseconds by column."""

    proleptic: bool
    timestamps: dict[str, tuple[int, int]]


def orc_facts(file: Any) -> OrcFacts | None:
    """The facts of an open random access file; None where the footer cannot be understood."""
    try:
        size = file.size()
        length = file.read_at(1, size - 1)[0]
        post = pb.PostScript.FromString(file.read_at(length, size - 1 - length))
        footer = file.read_at(post.footer_length, size - 1 - length - post.footer_length)
        return _facts(pb.Footer.FromString(_decompressed(footer, post.compression)))
    except (DecodeError, IndexError, ValueError, OSError, zlib.error, pa.ArrowException):
        return None


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
