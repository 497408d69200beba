"""Reads text files as blocks of whole lines, from any byte range, and normalizes line ends and byte order marks.

A line belongs to the byte range in which its first byte is. With the lines "ab", "cd" and "ef" in a file of 9 bytes, the
range 0-4 has "ab" and "cd", whose first bytes are 0 and 3, and the range 4-9 has "ef". The reader of the second range begins
one byte earlier, at byte 3, and skips to the first line end, so that it also finds a line that begins exactly at its start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.files import local_path
from kquery_spark.sources.input_file import InputFile, shared_input
from kquery_spark.sources.object_stores.connections import error_text
from kquery_spark.sources.prefetch.read_ahead import ReadAhead
from kquery_spark.sources.prefetch.read_counts import count_read

_BLOCK_BYTES = 8 << 20
_PEEK_BYTES = 4096
_BOM = b"\xef\xbb\xbf"
_CODECS = {".gz": "gzip", ".bz2": "bz2"}
_UNSUPPORTED_SUFFIXES = (".deflate", ".snappy", ".lz4", ".zst", ".lzo", ".xz")


def is_compressed(path: str) -> bool:
    """True if the file is compressed according to its name, as in Hadoop."""
    return path.endswith(tuple(_CODECS))


def check_codec(path: str) -> None:
    """Raise Unsupported for files that Spark would decompress but the engine cannot."""
    if path.endswith(_UNSUPPORTED_SUFFIXES):
        raise Unsupported(f"text files compressed like {path} are not supported")


def first_lines(file: DataFile, size: int = 1 << 20) -> bytes:
    """The first whole lines of a file, about ``size`` bytes."""
    for block in line_blocks(file, 0, size, block_bytes=size):
        return block
    return b""


def line_blocks(
    file: DataFile, start: int, length: int, whole: bool = False, block_bytes: int = _BLOCK_BYTES
) -> Iterator[bytes]:
    """Yield the lines that begin in a byte range, in blocks of about 8 MB. whole: yield the whole file as one block.

    A line may end with a newline, a carriage return or both; in the blocks, every line ends with a newline.
    """
    try:
        with _open(file, start, length, whole) as reader:
            for block in _blocks(reader, file, start, length, whole, block_bytes):
                reader.check_unchanged()
                yield _normalized(block)
    except (OSError, pa.ArrowException, EOFError) as error:
        raise SourceError(f"cannot read {file.path}: {error_text(error, file.path)}") from None


class _LocalReader:
    """Reads a local file with the interface of ``ReadAhead``, which reads remote files."""

    def __init__(self, source: InputFile) -> None:
        self._source = source
        self.read_at = source.read_at
        self.check_unchanged = source.check_unchanged

    def forget(self, before: int) -> None:
        """Do nothing, because no bytes are cached."""

    def stream(self) -> Any:
        """The whole file as a stream."""
        count_read(self._source.file.size)
        return self._source.native


@contextmanager
def _open(file: DataFile, start: int, length: int, whole: bool) -> Iterator[_LocalReader | ReadAhead]:
    if local_path(file.path) is not None:
        with InputFile(file) as source:
            yield _LocalReader(source)
        return
    is_streamed = whole or is_compressed(file.path)
    first, end = (0, file.size) if is_streamed else (max(start - 1, 0), start + length)
    # The shared handle stays open after this block, because requests may still run then.
    with closing(ReadAhead(shared_input(file), first, end)) as ahead:
        yield ahead


def _blocks(
    reader: _LocalReader | ReadAhead, file: DataFile, start: int, length: int, whole: bool, block_bytes: int
) -> Iterator[bytes]:
    if whole or is_compressed(file.path):
        yield from _streamed(_decompressed(reader.stream(), file), file, whole, block_bytes)
        return
    # The first line of the range begins after the first line end from byte start - 1 on.
    at = _next_line(reader, file.size, start - 1) if start else 0
    end = min(start + length, file.size)
    while at < end:
        stop = min(end, at + block_bytes)
        stop = file.size if stop == file.size else min(_next_line(reader, file.size, stop - 1), file.size)
        block = reader.read_at(stop - at, at)
        reader.forget(stop)
        yield block if at else block.removeprefix(_BOM)
        at = stop


def _decompressed(stream: Any, file: DataFile) -> Any:
    for suffix, codec in _CODECS.items():
        if file.path.endswith(suffix):
            return pa.CompressedInputStream(stream, codec)
    return stream


def _streamed(stream: Any, file: DataFile, whole: bool, block_bytes: int) -> Iterator[bytes]:
    """Yield blocks of whole lines from a stream, for compressed files and for ``whole``."""
    pending, first = b"", True
    while chunk := stream.read() if whole else stream.read(block_bytes):
        if first:
            chunk, first = chunk.removeprefix(_BOM), False
        pending += chunk
        cut = 0 if whole else pending.rfind(b"\n") + 1
        if cut:
            yield pending[:cut]
            pending = pending[cut:]
    returns = pending.count(b"\r") if whole else 0
    if returns and not returns == pending.count(b"\n") == pending.count(b"\r\n"):
        raise SourceError(f"{file.path} has several kinds of line ends, which multiLine does not support")
    if pending:
        yield pending


def _next_line(reader: _LocalReader | ReadAhead, size: int, position: int) -> int:
    """The start of the line after the one at ``position``; a position past the end of the file if there is none."""
    while position < size:
        chunk = reader.read_at(min(_PEEK_BYTES, size - position), position)
        at = chunk.find(b"\n")
        if at >= 0:
            return position + at + 1
        position += len(chunk)
    return 1 << 62


def _normalized(block: bytes) -> bytes:
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return block
