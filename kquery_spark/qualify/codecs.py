"""Decompresses event logs to a stream of chunks of bytes.

pyarrow reads the frames of Zstandard and gzip. For LZ4 and Snappy, Spark uses Java libraries that write blocks with
headers of their own, which this module parses.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import BinaryIO

import pyarrow as pa

_CHUNK_BYTES = 1 << 18
_LARGEST_BLOCK_BYTES = 1 << 26

Decoder = Callable[[BinaryIO], Iterator[bytes]]


class Truncated(Exception):
    """A compressed file ends inside a block, for example because the application was still running."""


class MalformedFile(Exception):
    """The bytes do not match the codec that the file's extension names."""


def plain(file: BinaryIO) -> Iterator[bytes]:
    """Read a file that is not compressed in chunks."""
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


def _frames(codec: str) -> Decoder:
    """Return a decoder for frames of a codec that pyarrow supports."""

    def decode(file: BinaryIO) -> Iterator[bytes]:
        stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), codec)
        while True:
            try:
                chunk = stream.read(_CHUNK_BYTES)
            except OSError as error:
                # pyarrow raises OSError for both cases; only the message says which one it is
                raise (Truncated if "runcated" in str(error) else MalformedFile)(str(error)) from None
            if not chunk:
                return
            yield chunk

    return decode


def lz4_blocks(file: BinaryIO) -> Iterator[bytes]:
    """Decode the blocks of lz4-java's LZ4BlockOutputStream: magic, method, sizes, checksum, then LZ4 without a frame."""
    codec = pa.Codec("lz4_raw")
    while header := file.read(21):
        if not b"LZ4Block".startswith(header[:8]):
            raise MalformedFile("an LZ4 block has another header")
        if len(header) < 21:
            raise Truncated
        token, compressed_bytes, decompressed_bytes = struct.unpack_from("<Bii", header, 8)
        data = _exactly(file, compressed_bytes)
        if token & 0xF0 == 0x20:
            yield _decompressed(codec, data, decompressed_bytes)
        elif token & 0xF0 == 0x10:
            yield data
        else:
            raise MalformedFile(f"an LZ4 block has the unknown method {token}")


def snappy_blocks(file: BinaryIO) -> Iterator[bytes]:
    """Decode the blocks of snappy-java's SnappyOutputStream.

    Each stream starts with a header. A block is a length, then Snappy without a frame.
    """
    codec, magic = pa.Codec("snappy"), b"\x82SNAPPY\x00"
    if not magic.startswith(first := file.read(8)):
        raise MalformedFile("the file does not begin with Snappy's header")
    if len(first) == 8:
        _exactly(file, 8)
    while head := file.read(4):
        if len(head) < 4:
            raise Truncated
        if head == magic[:4]:  # another stream was appended: skip the rest of its header
            _exactly(file, 12)
            continue
        data = _exactly(file, int.from_bytes(head, "big"))
        yield _decompressed(codec, data, _snappy_size(data))


def _snappy_size(data: bytes) -> int:
    """Return the decompressed size, which is Snappy's leading varint."""
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size
        shift += 7
    raise MalformedFile("a Snappy block has no size")


def _decompressed(codec: pa.Codec, data: bytes, size: int) -> bytes:
    if not 0 <= size <= _LARGEST_BLOCK_BYTES:
        raise MalformedFile(f"a block says that it has {size} bytes")
    if not size:
        return b""
    try:
        return bytes(codec.decompress(data, size, asbytes=True))
    except OSError as error:
        raise MalformedFile(str(error)) from None


def _exactly(file: BinaryIO, size: int) -> bytes:
    if not 0 <= size <= _LARGEST_BLOCK_BYTES:
        raise MalformedFile(f"a block says that it has {size} bytes")
    data = file.read(size)
    if len(data) < size:
        raise Truncated
    return data


CODECS: Mapping[str, Decoder] = MappingProxyType(
    {
        ".zstd": _frames("zstd"),
        ".zst": _frames("zstd"),
        ".gz": _frames("gzip"),
        ".lz4": lz4_blocks,
        ".snappy": snappy_blocks,
    }
)
"""Decoders by file extension: Spark's codecs except LZF, and gzip for logs that were compressed later."""
