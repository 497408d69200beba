"""The byte ranges of column chunks in a Parquet file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kquery_spark.cached_property import cached_property
from kquery_spark.sources.prefetch.byte_ranges import ByteRange


class StoredChunks:
    """The byte ranges of the column chunks of one file, by row group and column.

    metadata: pyarrow's ``FileMetaData``. paths: the path of each leaf.
    """

    def __init__(self, metadata: Any, paths: Sequence[str]) -> None:
        self._metadata = metadata
        self._paths = paths
        self._chunks: dict[tuple[int, str], list[ByteRange]] = {}

    @cached_property
    def _leaves(self) -> dict[str, list[tuple[int, str]]]:
        """The numbers and paths of the leaves, grouped by the first part of the path."""
        leaves: dict[str, list[tuple[int, str]]] = {}
        for index, path in enumerate(self._paths):
            leaves.setdefault(_first_part(path), []).append((index, path))
        return leaves

    def byte_ranges(self, group: int, columns: Iterable[str]) -> list[ByteRange]:
        """Return a range for each leaf of columns in a row group. columns: column names or leaf paths, as in pyarrow."""
        return [chunk for column in columns for chunk in self._of_column(group, column)]

    def _of_column(self, group: int, column: str) -> list[ByteRange]:
        key = (group, column)
        if key not in self._chunks:
            row_group = self._metadata.row_group(group)
            leaves = self._leaves.get(_first_part(column), ())
            self._chunks[key] = [
                range_of(row_group.column(i)) for i, p in leaves if p == column or p.startswith(f"{column}.")
            ]
        return self._chunks[key]


def _first_part(path: str) -> str:
    return path.partition(".")[0]


def range_of(chunk: Any) -> ByteRange:
    """Return the byte range of a column chunk. chunk: pyarrow's ``ColumnChunkMetaData``."""
    start = chunk.data_page_offset
    if chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    return ByteRange(start, chunk.total_compressed_size)
