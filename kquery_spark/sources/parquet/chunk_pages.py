"""The pages of a file's flat columns: where they lie, and what values they hold.

Pages are located by their headers, one behind the other, which all files have. Of a file on another filesystem that takes
fetching the chunk, so its page index provides their locations, if it has one. The page index also has their value ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from kquery_spark.sources.base import ColumnRange, DataFile
from kquery_spark.sources.files import local_path
from kquery_spark.sources.parquet.footer import flat_elements
from kquery_spark.sources.parquet.page_index import PageIndex, chunk_indexes
from kquery_spark.sources.parquet.pages import CODECS, Page, PagedColumn, Pages, pages_of, placed
from kquery_spark.sources.parquet.stored_chunks import range_of
from kquery_spark.sources.prefetch.byte_ranges import ByteReader
from kquery_spark.types.vector import Int64s

# of a column chunk for which looking at its pages takes less than reading it
_MIN_PAGED_ROWS, _MIN_PAGED_BYTES = 1 << 18, 1 << 20
_MAX_PAGE_ROW_SHARE = 0.5  # share of a chunk's rows up to which pages are read alone

_Chunk = tuple[int, str]
"""A row group and a flat column."""


class ChunkPages:
    """What is known of the pages of a file.

    metadata: pyarrow's ``FileMetaData``. flat: the numbers of the flat columns' leaves. footer: gives it serialized. reader:
    gives what a column of a row group is read from.
    """

    def __init__(
        self,
        file: DataFile,
        metadata: Any,
        schema: pa.Schema,
        flat: Mapping[str, int],
        footer: Callable[[], bytes | None],
        reader: Callable[[int, Sequence[str]], ByteReader],
    ) -> None:
        self._file = file
        self._is_local = local_path(file.path) is not None
        self._metadata = metadata
        self._schema = schema
        self._flat = flat
        self._footer = footer
        self._reader = reader
        self._headers: dict[_Chunk, tuple[Page | None, list[Page]] | None] = {}
        self._found: dict[tuple[int, str, bool], Pages | None] = {}
        self._ranges: dict[_Chunk, tuple[Int64s, list[ColumnRange]] | None] = {}

    def holding(
        self, group: int, column: str, rows: Int64s, *, before_fetch: bool = False
    ) -> PagedColumn | None:
        """The pages that hold these rows of a row group; None where reading the column as a whole takes no longer.

        before_fetch: the chunk of a file on another filesystem must not be fetched to find its pages.
        """
        num_rows = self._metadata.row_group(group).num_rows
        if len(rows) > _MAX_PAGE_ROW_SHARE * num_rows:
            return None
        pages = self._pages(group, column, by_headers=self._is_local or not before_fetch)
        if pages is None:
            return None
        at = pages.holding(rows)
        if at.lengths.sum() > _MAX_PAGE_ROW_SHARE * num_rows:
            return None
        return PagedColumn(column, self._elements[column], self._chunk(group, column), at)

    def ranges(self, group: int, column: str) -> tuple[Int64s, list[ColumnRange]] | None:
        """The first row of each page of a column in a row group and the pages' value ranges; None without a page index."""
        key = (group, column)
        if key not in self._ranges:
            self._ranges[key] = self._find_ranges(group, column)
        return self._ranges[key]

    def headers(self, group: int, column: str) -> tuple[Page | None, list[Page]] | None:
        """The dictionary page and the other pages of a flat column in a row group; None where they are not as expected.

        Of a file on another filesystem it waits for the whole chunk.
        """
        key = (group, column)
        if key not in self._headers:
            try:
                self._headers[key] = pages_of(self._reader(group, [column]), self._chunk(group, column))
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
        except ValueError:  # what cannot be read says nothing of the data
            return None
        return (pages.starts, ranges) if ranges is not None and len(ranges) == len(pages.offsets) else None

    def _pages(self, group: int, column: str, *, by_headers: bool) -> Pages | None:
        """Where the pages of a column in a row group lie; None where it is not known, or of little use.

        by_headers: where no page index says it, or the file is local, the pages' headers may.
        """
        key = (group, column, by_headers)
        if key not in self._found:
            self._found[key] = self._find_pages(group, column, by_headers)
        return self._found[key]

    def _find_pages(self, group: int, column: str, by_headers: bool) -> Pages | None:
        if column not in self._flat or column not in self._elements:
            return None
        chunk, num_rows = self._chunk(group, column), self._metadata.row_group(group).num_rows
        if num_rows < _MIN_PAGED_ROWS and chunk.total_uncompressed_size < _MIN_PAGED_BYTES:
            return None
        pages = None if self._is_local else self._indexed(group, column)
        if pages is not None or not by_headers:
            return pages
        headers = self.headers(group, column)
        return None if headers is None else placed(*headers, num_rows)

    def _indexed(self, group: int, column: str) -> Pages | None:
        chunk, num_rows = self._chunk(group, column), self._metadata.row_group(group).num_rows
        if chunk.compression not in CODECS:
            return None
        try:
            return self._index.pages(group, self._flat[column], range_of(chunk), num_rows)
        except ValueError:  # the chunk can be read as a whole
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
        return flat_elements(footer) if footer else {}
