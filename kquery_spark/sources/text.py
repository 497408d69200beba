"""Text files as blocks of whole lines, from any byte range, with line ends and byte order mark normalized."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.input_file import InputFile
from kquery_spark.sources.object_stores.connections import error_text
from kquery_spark.sources.read_counts import count_read

_BLOCK_BYTES = 8 << 20
_PEEK_BYTES = 4096
_BOM = b"\xef\xbb\xbf"
_CODECS = {".gz": "gzip", ".bz2": "bz2"}
_UNREAD = (".deflate", ".snappy", ".lz4", ".zst", ".lzo", ".xz")


def is_compressed(path: str) -> bool:
    """Whether the name says that the file is compressed, as Hadoop decides it."""
    return path.endswith(tuple(_CODECS))


def check_codec(path: str) -> None:
    """Raise Unsupported for files Spark would decompress and the engine cannot."""
    if path.endswith(_UNREAD):
        raise Unsupported(f"Text files compressed like {path} are not supported.")


def first_lines(file: DataFile, size: int = 1 << 20) -> bytes:
    """The start of a file, cut after a line end when there is one."""
    for block in line_blocks(file, 0, size, block_bytes=size):
        return block
    return b""


def line_blocks(
    file: DataFile, start: int, length: int, whole: bool = False, block_bytes: int = _BLOCK_BYTES
) -> Iterator[bytes]:
    """The lines that begin in a byte range, in blocks of about 8 MB (``whole``: the file in one block).

    A line end is a newline, a carriage return or both; in the blocks it is always one newline.
    """
    try:
        with InputFile(file) as source:
            for block in _blocks(source, start, length, whole, block_bytes):
                source.check_unchanged()
                yield _normalized(block)
    except (OSError, pa.ArrowException, EOFError) as error:
        raise SourceError(f"cannot read {file.path}: {error_text(error, file.path)}") from None


def _blocks(source: InputFile, start: int, length: int, whole: bool, block_bytes: int) -> Iterator[bytes]:
    file = source.file
    if whole or is_compressed(file.path):
        count_read(file.size)
        yield from _streamed(_decompressed(source), file, whole, block_bytes)
        return
    # A line belongs to the range its first byte is in: it begins behind the first line end from start - 1 on.
    at = _next_line(source, start - 1) if start else 0
    end = min(start + length, file.size)
    while at < end:
        stop = min(end, at + block_bytes)
        stop = file.size if stop == file.size else min(_next_line(source, stop - 1), file.size)
        block = source.read_at(stop - at, at)
        yield block if at else block.removeprefix(_BOM)
        at = stop


def _decompressed(source: InputFile) -> Any:
    for suffix, codec in _CODECS.items():
        if source.file.path.endswith(suffix):
            return pa.CompressedInputStream(source.native, codec)
    return source.native


def _streamed(stream: Any, file: DataFile, whole: bool, block_bytes: int) -> Iterator[bytes]:
    """A file that can only be read from its start to its end."""
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


def _next_line(source: InputFile, position: int) -> int:
    """Where the line after the one at ``position`` begins; behind the end of the file when there is none."""
    while position < source.file.size:
        chunk = source.read_at(min(_PEEK_BYTES, source.file.size - position), position)
        at = chunk.find(b"\n")
        if at >= 0:
            return position + at + 1
        position += len(chunk)
    return 1 << 62


def _normalized(block: bytes) -> bytes:
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return block
