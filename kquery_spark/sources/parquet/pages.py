"""Reads only those pages of a Parquet row group that contain selected rows.

pyarrow can read whole column chunks only. Therefore the required pages and their dictionary pages are copied into a small
file in memory, this module writes a footer for it, and pyarrow reads this file:

    PAR1 | dictionary page of a | pages 3 and 4 of a | page 0 of b | footer | footer length | PAR1

For the format see parquet.thrift of apache/parquet-format.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.kernels.parquet_page_table import DATA, DATA_V2, DICTIONARY, PLAIN, RLE, RLE_DICTIONARY
from kquery_spark.sources.parquet.footer import MAGIC, PHYSICAL_TYPES, as_file
from kquery_spark.sources.parquet.thrift_compact import (
    BINARY,
    FALSE,
    I32,
    I64,
    LIST,
    STRUCT,
    TRUE,
    Cursor,
    binary,
    integer,
    listed,
    struct,
)
from kquery_spark.sources.prefetch.byte_ranges import ByteRange, ByteReader
from kquery_spark.types.vector import Int64s

_HEADER_BYTES = 1 << 9
_MAX_HEADER_BYTES = 1 << 20
_MAX_PAGE_NUMBER = (1 << 31) - 1  # largest size or value count: page headers have 32-bit integers
THRIFT_CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "ZSTD": 6, "LZ4": 7}  # pyarrow's LZ4 is LZ4_RAW
_ENCODINGS = (PLAIN, RLE, RLE_DICTIONARY)  # a formality: readers use the encodings in the page headers
_VERSION = 2
_ARROW_SCHEMA = b"ARROW:schema"


@dataclass(frozen=True)
class Pages:
    """The data pages of a flat column in one row group.

    dictionary: offset and size of the dictionary page. offsets, sizes: file offset and size of each data page, header
    included. starts: the first row of each page, followed by the number of rows.
    """

    dictionary: tuple[int, int] | None
    offsets: Int64s
    sizes: Int64s
    starts: Int64s

    def select(self, rows: Int64s) -> PageSelection:
        """Select the pages that contain these rows, which are in rising order."""
        counts = np.diff(np.searchsorted(rows, self.starts))
        numbers = np.flatnonzero(counts)
        return PageSelection(self, numbers, counts[numbers])


@dataclass(frozen=True)
class PageSelection:
    """Selected pages. numbers: the selected pages' numbers. requested: the number of requested rows in each of them."""

    pages: Pages
    numbers: Int64s
    requested: Int64s

    @property
    def lengths(self) -> Int64s:
        """The number of rows in each selected page."""
        counts: Int64s = self.pages.starts[self.numbers + 1] - self.pages.starts[self.numbers]
        return counts

    def positions(self, rows: Int64s) -> Int64s:
        """The positions of the requested rows in the concatenation of the selected pages.

        With pages of 100 rows and the rows [205, 410], pages 2 and 4 are selected. Their rows 200-299 and 400-499
        become the positions 0-99 and 100-199, so the result is [5, 110].
        """
        lengths = self.lengths
        before = np.cumsum(lengths) - lengths
        shifted: Int64s = rows + np.repeat(before - self.pages.starts[self.numbers], self.requested)
        return shifted


@dataclass(frozen=True)
class PagedColumn:
    """Pages of a column to read.

    element: the column's serialized SchemaElement. chunk: pyarrow's ``ColumnChunkMetaData``. selection: the selected pages.
    """

    name: str
    element: bytes
    chunk: Any
    selection: PageSelection

    @cached_property
    def byte_ranges(self) -> list[ByteRange]:
        """The byte ranges to read: the dictionary page, if any, and one range for each run of adjacent pages."""
        pages, numbers = self.selection.pages, self.selection.numbers
        dictionary = [ByteRange(*pages.dictionary)] if pages.dictionary else []
        return [*dictionary, *_runs(pages.offsets[numbers], pages.sizes[numbers])]


class PageHeader(NamedTuple):
    """A parsed page header.

    size, raw_size: size of the page without its header, as stored and after decompression. encoding, level_encoding: the
    encodings of the values and of the definition levels. level_bytes: size of the levels in a data page of version 2,
    where they come first and are not compressed; 0 for other pages.
    """

    kind: int
    values: int
    size: int
    raw_size: int
    encoding: int
    level_encoding: int
    level_bytes: int
    compressed: bool


class Page(NamedTuple):
    """A page in a file: the file offset of its header, the file offset after the header, and the header."""

    offset: int
    body: int
    header: PageHeader


def page_locations(dictionary: Page | None, pages: Sequence[Page], num_rows: int) -> Pages | None:
    """Return the locations of a chunk's pages; None if their row counts do not match the chunk's."""
    sizes = [p.body - p.offset + p.header.size for p in pages]
    starts = np.cumsum([0, *(p.header.values for p in pages)])
    if starts[-1] != num_rows:
        return None
    dictionary_range = (
        None
        if dictionary is None
        else (dictionary.offset, dictionary.body - dictionary.offset + dictionary.header.size)
    )
    return Pages(
        dictionary_range, np.array([p.offset for p in pages], np.int64), np.array(sizes, np.int64), starts
    )


def walk_pages(file: ByteReader, chunk: Any) -> tuple[Page | None, list[Page]] | None:
    """Locate the dictionary page, if any, and the data pages of a flat column's chunk by walking over the headers.

    None if the pages are not as expected, so that the chunk must be read as a whole. chunk: ``ColumnChunkMetaData``.
    Raises ValueError for headers that are not valid Thrift.
    """
    if chunk.compression not in THRIFT_CODECS:
        return None
    first = chunk.data_page_offset
    if chunk.dictionary_page_offset:
        first = min(first, chunk.dictionary_page_offset)
    end = first + chunk.total_compressed_size
    dictionary = None
    pages: list[Page] = []
    while first < end:
        page = _page(file, first, end)
        if page.header.kind == DICTIONARY and dictionary is None and not pages:
            dictionary = page
        elif page.header.kind in (DATA, DATA_V2):
            pages.append(page)
        else:
            return None
        first = page.body + page.header.size
    return (dictionary, pages) if first == end else None


def _page(file: ByteReader, offset: int, end: int) -> Page:
    length = _HEADER_BYTES
    while True:
        cursor = Cursor(bytes(file.read_at(min(length, end - offset), offset)))
        try:
            header = _page_header(cursor)
            return Page(offset, offset + cursor.at, header)
        except ValueError:
            if length >= min(_MAX_HEADER_BYTES, end - offset):
                raise
            length *= 8


def _page_header(cursor: Cursor) -> PageHeader:
    kind = size = raw_size = -1
    inner: dict[int, int] = {}
    version_2 = False
    for field, type_, _ in cursor.fields():
        if field == 1:
            kind = cursor.zigzag()
        elif field == 2:
            raw_size = cursor.zigzag()
        elif field == 3:
            size = cursor.zigzag()
        elif field in (
            5,
            7,
            8,
        ):  # the inner header: of a data page, a dictionary page, a data page of version 2
            version_2 = field == 8
            inner = _numbers(cursor)
        else:
            cursor.skip(type_)
    values = inner.get(1, -1)
    if min(kind, values, size, raw_size) < 0 or max(values, size, raw_size) > _MAX_PAGE_NUMBER:
        raise ValueError("a page's header lacks its type, its size or its number of values")
    if not version_2:
        return PageHeader(kind, values, size, raw_size, inner.get(2, -1), inner.get(3, -1), 0, True)
    level_bytes, compressed = inner.get(5, 0) + inner.get(6, 0), bool(inner.get(7, 1))
    if min(inner.get(5, 0), inner.get(6, 0)) < 0 or level_bytes > min(size, raw_size):
        raise ValueError("a page's header has more bytes of levels than the page has")
    return PageHeader(kind, values, size, raw_size, inner.get(4, -1), RLE, level_bytes, compressed)


def _numbers(cursor: Cursor) -> dict[int, int]:
    """The integers and booleans of a struct by field id."""
    numbers = {}
    for field, type_, _ in cursor.fields():
        if type_ == I32:
            numbers[field] = cursor.zigzag()
        elif type_ in (TRUE, FALSE):
            numbers[field] = type_ == TRUE
        else:
            cursor.skip(type_)
    return numbers


def file_of_pages(
    file: ByteReader, columns: Sequence[PagedColumn], arrow_schema: pa.Schema | None
) -> pa.Buffer:
    """Build a Parquet file with one row group that consists of these pages.

    Its columns may have different numbers of rows, so they must be read one by one. arrow_schema: the Arrow schema of these
    columns, if the original file stores one.
    """
    parts: list[bytes | memoryview] = [MAGIC]
    at = len(MAGIC)
    chunks = []
    for column in columns:
        start, dictionary = at, column.selection.pages.dictionary
        for part in column.byte_ranges:
            parts.append(file.read_at(part.size, part.start))
            at += part.size
        data = start + (dictionary[1] if dictionary else 0)
        chunks.append(_serialized_chunk(column, start if dictionary else None, data, at - start))
    root = struct([(4, BINARY, binary(b"schema")), (5, I32, integer(len(columns)))])
    rows = max(int(c.selection.lengths.sum()) for c in columns)
    group = struct([(1, LIST, listed(STRUCT, chunks)), (2, I64, integer(at)), (3, I64, integer(rows))])
    footer = [
        (1, I32, integer(_VERSION)),
        (2, LIST, listed(STRUCT, [root, *(c.element for c in columns)])),
        (3, I64, integer(rows)),
        (4, LIST, listed(STRUCT, [group])),
    ]
    if arrow_schema is not None:
        value = base64.b64encode(arrow_schema.serialize())
        pair = struct([(1, BINARY, binary(_ARROW_SCHEMA)), (2, BINARY, binary(value))])
        footer.append((5, LIST, listed(STRUCT, [pair])))
    return pa.py_buffer(b"".join((*parts, as_file(struct(footer)))))


def _runs(offsets: Int64s, sizes: Int64s) -> list[ByteRange]:
    """Merge adjacent pages into byte ranges: pages at 10, 20 and 40 of 10 bytes each give the ranges 10-30 and 40-50."""
    if len(offsets) == 0:
        return []
    ends = offsets + sizes
    breaks = np.flatnonzero(offsets[1:] != ends[:-1]) + 1
    firsts = offsets[np.concatenate([[0], breaks])]
    lasts = ends[np.concatenate([breaks - 1, [len(ends) - 1]])]
    return [ByteRange(int(first), int(last - first)) for first, last in zip(firsts, lasts, strict=True)]


def _serialized_chunk(column: PagedColumn, dictionary: int | None, data: int, size: int) -> bytes:
    """Serialize a ColumnChunk.

    dictionary, data: the offsets of the dictionary page and of the first data page. size: bytes of all pages together.
    """
    chunk = column.chunk
    values = [
        (1, I32, integer(PHYSICAL_TYPES.index(chunk.physical_type))),
        (2, LIST, listed(I32, [integer(e) for e in _ENCODINGS])),
        (3, LIST, listed(BINARY, [binary(column.name.encode())])),
        (4, I32, integer(THRIFT_CODECS[chunk.compression])),
        (5, I64, integer(int(column.selection.lengths.sum()))),
        (6, I64, integer(chunk.total_uncompressed_size)),
        (7, I64, integer(size)),
        (9, I64, integer(data)),
    ]
    if dictionary is not None:
        values.append((11, I64, integer(dictionary)))
    return struct([(2, I64, integer(0)), (3, STRUCT, struct(values))])
