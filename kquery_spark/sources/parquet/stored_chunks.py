"""Where column chunks lie in a Parquet file, and which reads pyarrow fetches them by.

pyarrow does not tell what it reads, but what it does is known: each chunk of a local file by itself; on other filesystems,
where ``pre_buffer`` is on, chunks that are near each other at once (``CacheOptions`` of Arrow's ``io/caching.h``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kquery_spark.sources.parquet.footer import TAIL_BYTES

_MAX_GAP_BYTES, _MAX_READ_BYTES = 8 << 10, 32 << 20  # hole_size_limit, range_size_limit
_FOOTER_READ_BYTES = 64 << 10  # the end of a file, which pyarrow reads in the hope that it has the footer


class ByteRange(NamedTuple):
    """Bytes of a file."""

    start: int
    size: int

    @property
    def end(self) -> int:
        """Where the next byte is."""
        return self.start + self.size


class StoredChunks:
    """The column chunks of one file by row group and column.

    metadata: pyarrow's ``FileMetaData``. paths: of its leaves.
    """

    def __init__(self, metadata: Any, paths: Sequence[str]) -> None:
        self._metadata = metadata
        self._leaves: dict[str, list[tuple[int, str]]] = {}  # by the first part of their paths
        for index, path in enumerate(paths):
            self._leaves.setdefault(_first_part(path), []).append((index, path))
        self._chunks: dict[tuple[int, str], list[ByteRange]] = {}

    def of(self, group: int, columns: Iterable[str]) -> list[ByteRange]:
        """The chunks of some columns in a row group, one for each leaf. columns: as pyarrow takes them, by name or path."""
        return [chunk for column in columns for chunk in self._of_column(group, column)]

    def _of_column(self, group: int, column: str) -> list[ByteRange]:
        key = (group, column)
        if key not in self._chunks:
            row_group = self._metadata.row_group(group)
            leaves = self._leaves.get(_first_part(column), ())
            self._chunks[key] = [
                _range(row_group.column(i)) for i, p in leaves if p == column or p.startswith(f"{column}.")
            ]
        return self._chunks[key]


def footer_reads(metadata: Any, file_size: int) -> list[int]:
    """The bytes of each read of a footer: once more where the first read has only a part of it."""
    tail, footer = min(_FOOTER_READ_BYTES, file_size), metadata.serialized_size
    return [tail] if footer + TAIL_BYTES <= tail else [tail, footer]


def coalesced(ranges: Iterable[ByteRange]) -> list[ByteRange]:
    """The reads by which Arrow fetches these ranges when it may read gaps between them, too."""
    reads: list[ByteRange] = []
    for part in sorted(ranges):
        last = reads[-1] if reads else None
        if (
            last is not None
            and part.start - last.end <= _MAX_GAP_BYTES
            and part.end - last.start <= _MAX_READ_BYTES
        ):
            reads[-1] = ByteRange(last.start, part.end - last.start)
        else:
            reads.append(part)
    return reads


def _first_part(path: str) -> str:
    return path.partition(".")[0]


def _range(chunk: Any) -> ByteRange:
    start = chunk.data_page_offset
    if chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    return ByteRange(start, chunk.total_compressed_size)
