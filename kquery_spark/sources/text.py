"""Text files as blocks of whole lines, from any byte range, with line ends and byte order mark normalized."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.files import check_unchanged, filesystem

_BLOCK_BYTES = 8 << 20
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


def _open(file: DataFile) -> Any:
    check_unchanged(file)
    try:
        fs, inner = filesystem(file.path)
        raw = fs.open_input_file(inner)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"cannot open {file.path}: {error}") from None
    for suffix, codec in _CODECS.items():
        if file.path.endswith(suffix):
            return pa.CompressedInputStream(raw, codec)
    return raw


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
        with _open(file) as stream:
            yield from _blocks(stream, file, start, length, whole, block_bytes)
    except (OSError, pa.ArrowException, EOFError) as error:
        raise SourceError(f"cannot read {file.path}: {error}") from None


def _blocks(
    stream: Any, file: DataFile, start: int, length: int, whole: bool, block_bytes: int
) -> Iterator[bytes]:
    if whole or is_compressed(file.path):
        yield from _streamed(stream, file, whole, block_bytes)
        return
    # A line belongs to the range its first byte is in: it begins behind the first line end from start - 1 on.
    at = _next_line(stream, start - 1) if start else 0
    end = min(start + length, file.size)
    while at < end:
        stop = min(end, at + block_bytes)
        stop = file.size if stop == file.size else min(_next_line(stream, stop - 1), file.size)
        stream.seek(at)
        block = stream.read(stop - at)
        yield _normalized(block if at else block.removeprefix(_BOM))
        at = stop


def _streamed(stream: Any, file: DataFile, whole: bool, block_bytes: int) -> Iterator[bytes]:
    """A file that can only be read from its start to its end."""
    pending, first = b"", True
    while chunk := stream.read() if whole else stream.read(block_bytes):
        if first:
            chunk, first = chunk.removeprefix(_BOM), False
        pending += chunk
        cut = 0 if whole else pending.rfind(b"\n") + 1
        if cut:
            yield _normalized(pending[:cut])
            pending = pending[cut:]
    returns = pending.count(b"\r") if whole else 0
    if returns and not returns == pending.count(b"\n") == pending.count(b"\r\n"):
        raise SourceError(f"{file.path} has several kinds of line ends, which multiLine does not support")
    if pending:
        yield _normalized(pending)


def _next_line(stream: Any, position: int) -> int:
    """Where the line after the one at ``position`` begins; behind the end of the file when there is none."""
    stream.seek(position)
    while chunk := stream.read(4096):
        at = chunk.find(b"\n")
        if at >= 0:
            return position + int(at) + 1
        position += len(chunk)
    return 1 << 62


def _normalized(block: bytes) -> bytes:
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return block
