"""Splits the decompressed bytes of a log into lines, with bounds on what a small file can make of memory and time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kquery_spark.qualify.codecs import Malformed, Truncated

MAX_LINE_BYTES = 32 << 20
"""The longest event that is read: the largest plans of real queries take a few MB, and parsed up to ten times that."""

MAX_EXPANSION = 2_000
"""Decompressed bytes for each byte of a file. Logs of many equal queries reach some hundreds, and zstd allows 30,000."""

_FREE_BYTES = 64 << 20  # of decompressed bytes that any file may have
_PIECE_BYTES = 1 << 18
_BLANK_LINES = re.compile(rb"\n\n+")


class LineSplitter:
    """The lines of a file.

    too_long: the number of lines longer than MAX_LINE_BYTES, which are dropped as they stream. truncated: the file ends
    inside of a compressed block.
    """

    def __init__(self) -> None:
        self.too_long = 0
        self.truncated = False

    def lines(self, chunks: Iterable[bytes], file_bytes: int) -> Iterator[bytes]:
        """Lines without their ends; some blank ones are left out. Malformed for a file that expands beyond MAX_EXPANSION."""
        parts: list[bytes] = []
        size = 0  # of the line so far, also where it is too long to keep
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
        """The chunks in small pieces without blank lines after one another, up to where the file is cut off."""
        most, total = _FREE_BYTES + MAX_EXPANSION * file_bytes, 0
        try:
            for chunk in chunks:
                total += len(chunk)
                if total > most:
                    raise Malformed(f"it decompresses to more than {MAX_EXPANSION:,} times its size")
                for start in range(0, len(chunk), _PIECE_BYTES):
                    piece = chunk[start : start + _PIECE_BYTES]
                    yield _BLANK_LINES.sub(b"\n", piece) if b"\n\n" in piece else piece
        except Truncated:
            self.truncated = True
