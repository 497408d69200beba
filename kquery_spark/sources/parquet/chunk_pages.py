"""Locates the pages of a file's flat columns and reads their statistics.

In a local file, pages are located by walking over their headers, which every file has. In a remote file this would fetch the
whole chunk, so the page index provides the locations, if the file has one. The statistics always come from the page index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.sources.base import ColumnRange, DataFile
from kquery_spark.sources.files import local_path
from kquery_spark.sources.parquet.footer import flat_elements
from kquery_spark.sources.parquet.page_index import PageIndex, chunk_indexes
from kquery_spark.sources.parquet.pages import (
    THRIFT_CODECS,
    Page,
    PagedColumn,
    Pages,
    page_locations,
    walk_pages,
)
from kquery_spark.sources.parquet.stored_chunks import range_of
from kquery_spark.sources.prefetch.byte_ranges import ByteReader
from kquery_spark.types.vector import Int64s

# smaller column chunks are read whole, because locating their pages costs more than it saves
_MIN_PAGED_ROWS, _MIN_PAGED_BYTES = 1 << 18, 1 << 20
_MAX_PAGE_ROW_SHARE = 0.5  # pages are read alone if they have at most this share of the chunk's rows

_ChunkKey = tuple[int, str]
"""The number of a row group, and the name of a flat column."""


class ChunkPages:
    """Cached locations and statistics of the pages of a file.

    metadata: pyarrow's ``FileMetaData``. flat: the leaf number of each flat column. footer: returns the serialized footer.
    int96_is_bytes: whether pyarrow reads INT96 times as 12 bytes. reader: returns a reader of the chunks of columns in a row
    group.
    """

    def __init__(
        self,
        file: DataFile,
        metadata: Any,
        schema: pa.Schema,
        flat: Mapping[str, int],
        footer: Callable[[], bytes | None],
        int96_is_bytes: bool,
        reader: Callable[[int, Sequence[str]], ByteReader],
    ) -> None:
        self._file = file
        self._is_local = local_path(file.path) is not None
        self._metadata = metadata
        self._schema = schema
        self._flat = flat
        self._footer = footer
        self._int96_is_bytes = int96_is_bytes
        self._reader = reader
        self._headers: dict[_ChunkKey, tuple[Page | None, list[Page]] | None] = {}
        self._located: dict[tuple[int, str, bool], Pages | None] = {}
        self._ranges: dict[_ChunkKey, tuple[Int64s, list[ColumnRange]] | None] = {}

    def with_rows(
        self, group: int, column: str, rows: Int64s, *, before_fetch: bool = False
    ) -> PagedColumn | None:
        """Select the pages that contain these rows of a row group; None if the whole column is to be read.

        before_fetch: True if the chunk of a remote file must not be fetched in order to locate its pages.
        """
        num_rows = self._metadata.row_group(group).num_rows
        if len(rows) > _MAX_PAGE_ROW_SHARE * num_rows:
            return None
        pages = self._pages(group, column, by_headers=self._is_local or not before_fetch)
        if pages is None:
            return None
        selection = pages.select(rows)
        if selection.lengths.sum() > _MAX_PAGE_ROW_SHARE * num_rows:
            return None
        return PagedColumn(column, self._elements[column], self._chunk(group, column), selection)

    def ranges(self, group: int, column: str) -> tuple[Int64s, list[ColumnRange]] | None:
        """Return the first row of each page, then the number of rows, and each page's statistics. None without an index."""
        key = (group, column)
        if key not in self._ranges:
            self._ranges[key] = self._find_ranges(group, column)
        return self._ranges[key]

    def headers(self, group: int, column: str) -> tuple[Page | None, list[Page]] | None:
        """Locate the dictionary page and the data pages of a flat column in a row group; None if they are not as expected.

        Waits until the whole chunk is fetched if the file is remote.
        """
        key = (group, column)
        if key not in self._headers:
            try:
                self._headers[key] = walk_pages(self._reader(group, [column]), self._chunk(group, column))
            except ValueError:
                self._headers[key] = None
        return self._headers[key]

    def _find_ranges(self, group: int, column: str) -> tuple[Int64s, list[ColumnRange]] | None:
        pages = self._pages(group, column, by_headers=self._is_local)
        if pages is None:
            return None
        physical, dtype = self._chunk(group, column).physical_type, self._schema.field(column).type
        try:
            ranges = self._index.ranges(group, self._flat[column], physical, dtype)
        except ValueError:  # a damaged index does not make the data unreadable
            return None
        return (pages.starts, ranges) if ranges is not None and len(ranges) == len(pages.offsets) else None

    def _pages(self, group: int, column: str, *, by_headers: bool) -> Pages | None:
        """Locate the pages of a column in a row group; None if they are unknown or the chunk is small.

        by_headers: whether page headers may be read if there is no page index, and in local files.
        """
        key = (group, column, by_headers)
        if key not in self._located:
            self._located[key] = self._find_pages(group, column, by_headers)
        return self._located[key]

    def _find_pages(self, group: int, column: str, by_headers: bool) -> Pages | None:
        if column not in self._flat or column not in self._elements:
            return None
        chunk, num_rows = self._chunk(group, column), self._metadata.row_group(group).num_rows
        if num_rows < _MIN_PAGED_ROWS and chunk.total_uncompressed_size < _MIN_PAGED_BYTES:
            return None
        pages = None if self._is_local else self._pages_from_index(group, column)
        if pages is not None or not by_headers:
            return pages
        headers = self.headers(group, column)
        return None if headers is None else page_locations(*headers, num_rows)

    def _pages_from_index(self, group: int, column: str) -> Pages | None:
        chunk, num_rows = self._chunk(group, column), self._metadata.row_group(group).num_rows
        if chunk.compression not in THRIFT_CODECS:
            return None
        try:
            return self._index.pages(group, self._flat[column], range_of(chunk), num_rows)
        except ValueError:  # the index is damaged, but the chunk can still be read whole
            return None

    def _chunk(self, group: int, column: str) -> Any:
        return self._metadata.row_group(group).column(self._flat[column])

    @cached_property
    def _index(self) -> PageIndex:
        footer, metadata = self._footer(), self._metadata
        return PageIndex(
            self._file,
            [] if footer is None else chunk_indexes(footer, metadata.num_row_groups, metadata.num_columns),
        )

    @cached_property
    def _elements(self) -> dict[str, bytes]:
        footer = self._footer()
        return flat_elements(footer, int96=self._int96_is_bytes) if footer else {}
