"""Splits the decompressed bytes of a log into lines, and bounds the memory and time that a small file can cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kquery_spark.qualify.codecs import MalformedFile, Truncated

MAX_LINE_BYTES = 32 << 20
"""The longest event that is read. The largest plans of real queries take a few MB, and up to ten times that when parsed."""

MAX_EXPANSION = 2_000
"""Decompressed bytes per byte of a file. Logs of many equal queries reach some hundreds, and zstd allows 30,000."""

_ALWAYS_ALLOWED_BYTES = 64 << 20  # decompressed bytes that are allowed for a file of any size
_PIECE_BYTES = 1 << 18
_BLANK_LINES = re.compile(rb"\n\n+")


class LineSplitter:
    """Splits the chunks of one file into lines.

    too_long: the number of lines longer than MAX_LINE_BYTES, which are dropped and never held in memory. truncated: whether
    the file ends inside a compressed block.
    """

    def __init__(self) -> None:
        self.too_long = 0
        self.truncated = False

    def lines(self, chunks: Iterable[bytes], file_bytes: int) -> Iterator[bytes]:
        """Yield lines without their line ends, and without most blank lines.

        Raises MalformedFile for a file that expands beyond MAX_EXPANSION.
        """
        parts: list[bytes] = []
        size = 0  # bytes of the current line so far; counts on if the line is too long to keep
        for piece in self._pieces(chunks, file_bytes):
            begin = 0
            while (end := piece.find(b"\n", begin)) >= 0:
                size += end - begin
                if size <= MAX_LINE_BYTES:
                    parts.append(piece[begin:end])
                    yield b"".join(parts)
                else:
                    self.too_long += 1
                parts, size, begin = [], 0, end + 1
            size += len(piece) - begin
            if size <= MAX_LINE_BYTES:
                parts.append(piece[begin:])
            else:
                parts.clear()
        if size > MAX_LINE_BYTES:
            self.too_long += 1
        elif size:
            yield b"".join(parts)

    def _pieces(self, chunks: Iterable[bytes], file_bytes: int) -> Iterator[bytes]:
        """Cut the chunks into small pieces and collapse runs of blank lines; ends where the file is truncated."""
        limit, total = _ALWAYS_ALLOWED_BYTES + MAX_EXPANSION * file_bytes, 0
        try:
            for chunk in chunks:
                total += len(chunk)
                if total > limit:
                    raise MalformedFile(
                        f"the file decompresses to more than {MAX_EXPANSION:,} times its size"
                    )
                for start in range(0, len(chunk), _PIECE_BYTES):
                    piece = chunk[start : start + _PIECE_BYTES]
                    yield _BLANK_LINES.sub(b"\n", piece) if b"\n\n" in piece else piece
        except Truncated:
            self.truncated = True
