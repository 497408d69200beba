"""Reads a flat column of a row group with compiled loops, from the bytes of its chunk to an Arrow array.

    bytes of the column chunk
      |  page_table          writes a row of integers for each page header
      v
    pages                    decompress_snappy or pyarrow's codec yields the dictionary and the pages with selected rows
      |  decode_values       decodes fixed-width values or dictionary indices, of all rows or of the selected rows
      |  decode_strings      decodes strings, or the strings of the dictionary page
      v
    Arrow array of the type that pyarrow would return, except that string views become strings with offsets

A loop takes all pages of a chunk in one call. Conditions on a column are evaluated once per dictionary entry, and the
indices that ``packed_indices`` returns are compared afterwards.

The functions return None for a chunk that the loops cannot read: one with another type, codec or encoding, or a damaged
one. The caller then lets pyarrow read the chunk, which also reports damage.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.kernels.parquet_page_table import (
    AS_STORED,
    BODY,
    COMPRESSED,
    COMPRESSED_PAGES,
    DATA,
    ENCODING,
    INDEX_PAGES,
    KIND,
    LEVEL_BYTES,
    OTHER_CODEC,
    PAGE_FIELDS,
    PLAIN,
    PLAIN_DICTIONARY,
    RAW_BYTES,
    RAW_SIZE,
    SIZE,
    SNAPPY,
    TOO_MANY_PAGES,
    TOTALS,
    VALUES,
)
from kquery_spark.sources.dictionary_column import PackedIndices
from kquery_spark.sources.parquet.page_codecs import Bytes, raw_pages
from kquery_spark.sources.prefetch.byte_ranges import ByteRange
from kquery_spark.types.vector import Int64s

_WIDTHS = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
# the codec argument of ``page_table``; LZ4 is missing because the name stands for two formats
_CODECS = {"UNCOMPRESSED": AS_STORED, "SNAPPY": SNAPPY, "ZSTD": OTHER_CODEC, "GZIP": OTHER_CODEC}
_DECOMPRESSED_BY_LOOPS = ("UNCOMPRESSED", "SNAPPY")
_DICTIONARY_ENCODINGS = (PLAIN, PLAIN_DICTIONARY)
_INDEX_ENCODINGS = {"RLE_DICTIONARY", "PLAIN_DICTIONARY"}
# The encodings that the footer of a readable chunk may list. Old writers list BIT_PACKED for the repetition levels, although
# flat columns have none.
_ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED", *_INDEX_ENCODINGS}
_MAX_HEADER_BYTES = 1 << 12  # more than the headers of the pages of a short chunk take
_FIRST_PAGES, _MAX_PAGES = 64, 1 << 16
_NO_ROWS = np.empty(0, np.int64)
_NO_BYTES = np.empty(0, np.uint8)
_INDEX_WIDTH = 0  # makes ``decode_values`` write the dictionary's indices
# indices are uint16, and the index after the last value stands for NULL
_MAX_DICTIONARY_VALUES = (1 << 16) - 1
# with fewer rows per value, decoding the dictionary and testing its values costs too much
_MIN_ROWS_PER_VALUE = 32


@dataclass(frozen=True)
class FlatChunk:
    """A flat column of one row group.

    byte_range: the position of the chunk in its file. raw_size: bytes of its pages after decompression, headers included.
    dtype: the Arrow type to return, a dictionary type for strings that are read as indices. has_levels: whether the column
    has definition levels, so that rows can be NULL. has_dictionary: whether any page stores dictionary indices.
    rows: the number of rows in the row group.
    """

    byte_range: ByteRange
    raw_size: int
    codec: str
    dtype: pa.DataType
    has_levels: bool
    has_dictionary: bool
    rows: int

    @property
    def max_dictionary_values(self) -> int:
        """The largest number of distinct values for which conditions are evaluated on the dictionary."""
        return min(_MAX_DICTIONARY_VALUES, self.rows // _MIN_ROWS_PER_VALUE)

    @property
    def may_have_small_dictionary(self) -> bool:
        """False if the footer shows that ``dictionary_values`` would return None, so that the chunk need not be read for it.

        If the dictionary is small enough and all pages store indices, the raw bytes of the chunk are the values of the
        dictionary, the bit-packed indices, and levels and headers, for which one byte for each row is plenty.
        """
        if not self.has_dictionary or _is_string(self.dtype) or pa.types.is_dictionary(self.dtype):
            return False
        count = self.max_dictionary_values
        dictionary_bytes = count * self.dtype.bit_width // 8
        index_bytes = self.rows * count.bit_length() // 8
        return bool(self.raw_size <= dictionary_bytes + index_bytes + self.rows + _MAX_HEADER_BYTES)

    @property
    def loops_are_faster(self) -> bool:
        """True if the loops decode all rows of the chunk in less time than pyarrow, as ``benchmarks.scan`` measures it.

        If only some rows are selected, the loops are faster for every chunk.
        """
        if pa.types.is_dictionary(self.dtype):
            return True
        loops_decompress = self.codec in _DECOMPRESSED_BY_LOOPS
        if _is_string(self.dtype):
            return loops_decompress and self.has_dictionary
        return loops_decompress or self.has_levels


def flat_chunk(
    chunk: Any, leaf: Any, dtype: pa.DataType, rows: int, byte_range: ByteRange
) -> FlatChunk | None:
    """Describe a chunk for the loops; None for nested columns and for types and codecs that the loops do not read.

    chunk, leaf: pyarrow's metadata of the chunk and of the column. dtype: the type that pyarrow gives the column.
    """
    dtype, codec, levels = with_offsets(dtype), chunk.compression, leaf.max_definition_level
    is_flat = leaf.max_repetition_level == 0 and levels <= 1 and chunk.num_values == rows
    if not is_flat or codec not in _CODECS or not _is_decodable(leaf.physical_type, dtype):
        return None
    if not _ENCODINGS.issuperset(chunk.encodings):
        return None
    has_dictionary = not _INDEX_ENCODINGS.isdisjoint(chunk.encodings)
    return FlatChunk(
        byte_range, chunk.total_uncompressed_size, codec, dtype, levels == 1, has_dictionary, rows
    )


def with_offsets(dtype: pa.DataType) -> pa.DataType:
    """Replace string views and binary views, which the engine does not use, by strings and binaries with offsets."""
    if pa.types.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, with_offsets(dtype.value_type))
    if pa.types.is_string_view(dtype):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(dtype) else dtype


def _is_decodable(physical_type: str, dtype: pa.DataType) -> bool:
    """True for strings, and for numbers that have the same width in the file and in Arrow."""
    if physical_type == "BYTE_ARRAY":
        return _is_string(dtype.value_type if pa.types.is_dictionary(dtype) else dtype)
    width = _WIDTHS.get(physical_type)
    tests = (pa.types.is_signed_integer, pa.types.is_floating, pa.types.is_date32, pa.types.is_timestamp)
    return width is not None and any(test(dtype) for test in tests) and bool(dtype.bit_width == 8 * width)


def _is_string(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_binary(dtype))


class _Pages(NamedTuple):
    """The page table of a chunk.

    dictionary: the table row of the dictionary page; None without one. data: the table rows of the data pages.
    are_compressed: whether any data page is compressed. are_indices: whether all data pages store dictionary indices.
    """

    dictionary: list[int] | None
    data: Int64s
    are_compressed: bool
    are_indices: bool


class ColumnReader:
    """Decodes a column chunk. data: the bytes of the chunk as stored in the file."""

    def __init__(self, chunk: FlatChunk, kernels: ModuleType, data: bytes | memoryview) -> None:
        self.chunk = chunk
        self._kernels = kernels
        self._data = np.frombuffer(data, np.uint8)

    def read(self, rows: Int64s | None = None) -> pa.Array | None:
        """Decode the values of ``rows`` (positions in rising order; None: all rows); None if the loops cannot."""
        pages, dtype = self._pages, self.chunk.dtype
        if pages is None or self._dictionary is None:
            return None
        if pa.types.is_dictionary(dtype):
            return self._dictionary_array(rows) if pages.are_indices else None
        return self._strings(rows) if _is_string(dtype) else self._numbers(rows)

    def dictionary_values(self) -> pa.Array | None:
        """Return the dictionary of numbers in index order; None if it is too large, or if a page does not store indices."""
        pages, dtype = self._pages, self.chunk.dtype
        if pages is None or pages.dictionary is None or not pages.are_indices or _is_string(dtype):
            return None
        count = pages.dictionary[VALUES]
        if pa.types.is_dictionary(dtype) or count > self.chunk.max_dictionary_values:
            return None
        data = self._dictionary
        if data is None or len(data) < count * dtype.bit_width // 8:
            return None
        return pa.Array.from_buffers(dtype, count, [None, pa.py_buffer(data)], 0)

    def packed_indices(self) -> PackedIndices | None:
        """Decompress all pages and return their dictionary indices, which stay bit-packed; None for a damaged page."""
        stored = self._decompressed(None)
        return None if stored is None else PackedIndices(*stored, self.chunk.has_levels)

    @cached_property
    def _pages(self) -> _Pages | None:
        """The page table; None if a header is not as expected. The table grows until all pages fit."""
        kernels, chunk, totals = self._kernels, self.chunk, np.empty(TOTALS, np.int64)
        room = _FIRST_PAGES
        while True:
            pages = np.empty((room, PAGE_FIELDS), np.int64)
            count = kernels.page_table(
                self._data, chunk.rows, chunk.has_levels, _CODECS[chunk.codec], pages, totals
            )
            if count != TOO_MANY_PAGES or room >= _MAX_PAGES:
                break
            room *= 8
        if count < 0 or totals[RAW_BYTES] > chunk.raw_size:
            return None
        dictionary = pages[0].tolist()
        has_dictionary = dictionary[KIND] >= 0
        return _Pages(
            dictionary if has_dictionary else None,
            pages[1 : count + 1],
            bool(totals[COMPRESSED_PAGES]),
            has_dictionary and bool(totals[INDEX_PAGES] == count),
        )

    @cached_property
    def _dictionary(self) -> Bytes | None:
        """The decompressed dictionary page; empty without one, None if it is damaged or not plain-encoded."""
        page = self._pages and self._pages.dictionary
        if page is None:
            return _NO_BYTES
        if page[ENCODING] not in _DICTIONARY_ENCODINGS:
            return None
        if not page[COMPRESSED]:
            return self._data[page[BODY] : page[BODY] + page[SIZE]]
        decompressed = raw_pages(
            self.chunk.codec, self._kernels, self._data, np.array([page], np.int64), np.ones(1, np.bool_)
        )
        return None if decompressed is None else decompressed[0][: page[RAW_SIZE]]

    def _decompressed(self, rows: Int64s | None) -> tuple[Bytes, Int64s] | None:
        """Return the raw bytes of the data pages with selected rows, with a page table that points into them."""
        pages = self._pages
        if pages is None:
            return None
        if not pages.are_compressed:
            return self._data, pages.data
        return raw_pages(
            self.chunk.codec,
            self._kernels,
            self._data,
            pages.data,
            _pages_with_rows(pages.data[:, VALUES], rows),
        )

    def _numbers(self, rows: Int64s | None) -> pa.Array | None:
        dtype = self.chunk.dtype
        return self._fixed_width(rows, dtype, dtype.bit_width // 8)

    def _fixed_width(self, rows: Int64s | None, dtype: pa.DataType, width: int) -> pa.Array | None:
        """Decode values of ``width`` bytes, or dictionary indices for ``_INDEX_WIDTH``."""
        stored = self._decompressed(rows)
        if stored is None:
            return None
        count = self.chunk.rows if rows is None else len(rows)
        out = pa.allocate_buffer(count * dtype.bit_width // 8)
        valid = np.empty(count if self.chunk.has_levels else 0, np.uint8)
        pages = self._pages
        entries = pages.dictionary[VALUES] if pages and pages.dictionary else 0
        nulls = self._kernels.decode_values(
            *stored,
            self._dictionary,
            entries,
            width,
            self.chunk.has_levels,
            *_selected(rows),
            valid,
            np.frombuffer(out, np.uint8),
        )
        return None if nulls < 0 else pa.Array.from_buffers(dtype, count, [_bitmap(valid, nulls), out], nulls)

    def _dictionary_array(self, rows: Int64s | None) -> pa.Array | None:
        """Decode the indices and combine them with the dictionary's strings."""
        strings = self._dictionary_strings
        indices = None if strings is None else self._fixed_width(rows, pa.int32(), _INDEX_WIDTH)
        return None if indices is None else pa.DictionaryArray.from_arrays(indices, strings, safe=False)

    @cached_property
    def _dictionary_strings(self) -> pa.Array | None:
        """The strings of the dictionary page, which has the same layout as a plain data page without NULLs."""
        pages, data = self._pages, self._dictionary
        if pages is None or pages.dictionary is None or data is None:
            return None
        page = np.array([pages.dictionary], np.int64)
        page[0, [KIND, BODY, SIZE, RAW_SIZE, ENCODING, LEVEL_BYTES]] = DATA, 0, len(data), len(data), PLAIN, 0
        count = pages.dictionary[VALUES]
        if 4 * count > len(data):  # each string has a size of four bytes before it
            return None
        return self._decode_strings(self.chunk.dtype.value_type, (data, page), None, count, levels=False)

    def _strings(self, rows: Int64s | None) -> pa.Array | None:
        stored = self._decompressed(rows)
        count = self.chunk.rows if rows is None else len(rows)
        return (
            None
            if stored is None
            else self._decode_strings(self.chunk.dtype, stored, rows, count, levels=self.chunk.has_levels)
        )

    def _decode_strings(
        self,
        dtype: pa.DataType,
        stored: tuple[Bytes, Int64s],
        rows: Int64s | None,
        count: int,
        *,
        levels: bool,
    ) -> pa.Array | None:
        offsets = pa.allocate_buffer(4 * (count + 1))
        valid = np.empty(count if levels else 0, np.uint8)
        pages = self._pages
        entries = pages.dictionary[VALUES] if pages and pages.dictionary else 0
        nulls, text = self._kernels.decode_strings(
            *stored,
            self._dictionary,
            entries,
            levels,
            *_selected(rows),
            valid,
            np.frombuffer(offsets, np.int32),
        )
        if nulls < 0:
            return None
        return pa.Array.from_buffers(
            dtype, count, [_bitmap(valid, nulls), offsets, pa.py_buffer(text)], nulls
        )


def _selected(rows: Int64s | None) -> tuple[bool, Int64s]:
    return (False, _NO_ROWS) if rows is None else (True, rows)


def _bitmap(valid: Bytes, nulls: int) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None


def _pages_with_rows(counts: Int64s, rows: Int64s | None) -> npt.NDArray[np.bool_]:
    """Return a flag per page: True if the page has a selected row. counts: the number of rows of each page.

    For pages of 100, 100 and 50 rows and the rows [3, 7, 220] the flags are [True, False, True].
    """
    if rows is None:
        return np.ones(len(counts), np.bool_)
    ends = np.searchsorted(rows, np.cumsum(counts))
    has_rows: npt.NDArray[np.bool_] = np.diff(ends, prepend=0) > 0
    return has_rows
