"""Parquet columns as dictionary indices, here called codes, and the distinct values that they stand for.

A chunk with a dictionary stores each value once and then, for each row, its index in a few bits. A filter is evaluated
on the distinct values; of the rows only the codes are compared, and values are decoded for the rows that pass. Velox
and ClickHouse read so, too. pyarrow gives codes of strings only, so the kernels of ``kernels/parquet.py`` unpack them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.sources.dictionary_column import PackedIndices
from kquery_spark.sources.parquet.pages import (
    DATA_V2,
    PLAIN,
    PLAIN_DICTIONARY,
    RLE,
    RLE_DICTIONARY,
    Page,
)
from kquery_spark.sources.parquet.thrift_compact import varint
from kquery_spark.sources.prefetch.byte_ranges import ByteReader
from kquery_spark.types.vector import Int64s

MAX_DICTIONARY_VALUES = (1 << 16) - 1  # the code behind the last value is that of NULL
_WIDTHS = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
_MIN_ROWS_PER_VALUE = 32  # at least; the dictionary is decoded, too


@dataclass(frozen=True)
class DictionaryChunk:
    """A column chunk all of whose pages are codes: its dictionary page and data pages in the file.

    dtype: the fixed-width type that pyarrow gives the column, of the same width as the file's. levels: whether there are
    definition levels, of one bit.
    """

    dictionary: Page
    pages: list[Page]
    codec: str
    dtype: pa.DataType
    levels: bool

    def values(self, file: ByteReader) -> pa.Array | None:
        """The distinct values, in the order of their codes; None for a page that is not as its header says."""
        header = self.dictionary.header
        stored = pa.py_buffer(file.read_at(header.size, self.dictionary.body))
        data = self._unpacked(stored, header.raw_size)
        if data is None or data.size < header.values * self.dtype.bit_width // 8:
            return None
        return pa.Array.from_buffers(self.dtype, header.values, [None, data], 0)

    def packed(self, file: ByteReader) -> PackedIndices | None:
        """The codes of all pages, decompressed; None for pages that are not as their headers say."""
        starts, counts, levels = self._layout
        parts: list[pa.Buffer] = []
        if self.pages:
            first, last = self.pages[0], self.pages[-1]
            size = last.body + last.header.size - first.offset
            stored = pa.py_buffer(file.read_at(size, first.offset))
            for page in self.pages:
                body = stored.slice(page.body - first.offset, page.header.size)
                if not self._append(parts, page, body):
                    return None
        return PackedIndices(np.frombuffer(b"".join(parts), np.uint8), starts, counts, levels)

    @cached_property
    def _layout(self) -> tuple[Int64s, Int64s, Int64s]:
        """Where each page begins among the decompressed ones, its rows, and the bytes of its levels."""
        headers = [p.header for p in self.pages]
        starts = np.cumsum([0, *(h.raw_size for h in headers)])
        # of version 1 the levels have their length before them, of version 2 the header gives it
        levels = [h.level_bytes if h.kind == DATA_V2 else -1 if self.levels else 0 for h in headers]
        return starts, np.array([h.values for h in headers], np.int64), np.array(levels, np.int64)

    def _append(self, parts: list[pa.Buffer], page: Page, body: pa.Buffer) -> bool:
        """Whether the page is of as many bytes as its header says; its levels and codes become parts then."""
        raw_size = page.header.raw_size
        if page.header.kind == DATA_V2:  # whose levels are not compressed
            if page.header.level_bytes > body.size:
                return False
            parts.append(body.slice(0, page.header.level_bytes))
            body = body.slice(page.header.level_bytes)
            raw_size -= page.header.level_bytes
        codes = self._unpacked(body, raw_size) if page.header.compressed else body
        if codes is None or codes.size != raw_size:
            return False
        parts.append(codes)
        return True

    def _unpacked(self, data: pa.Buffer, raw_size: int) -> pa.Buffer | None:
        """The bytes decompressed, or None where they are not as many as the header says."""
        codec = _codec(self.codec)
        if codec is None:
            return data if data.size == raw_size else None
        try:
            return codec.decompress(data, raw_size) if _fills(self.codec, data, raw_size) else None
        except (pa.ArrowException, OSError, ValueError):
            return None


def _fills(codec: str, data: pa.Buffer, raw_size: int) -> bool:
    """Whether compressed bytes say themselves that they make so many: pyarrow fills up what they do not make with zeros."""
    if codec == "SNAPPY":
        size = varint(raw_size)
        return bool(data.slice(0, min(data.size, len(size))).to_pybytes() == size)
    if codec == "GZIP":
        return int.from_bytes(data.slice(max(data.size - 4, 0)).to_pybytes(), "little") == raw_size
    return True  # of ZSTD pyarrow looks at the size itself


@cache
def _codec(name: str) -> Any | None:
    return None if name == "UNCOMPRESSED" else pa.Codec(name.lower())


def coded_chunk(
    chunk: Any, leaf: Any, dtype: pa.DataType, dictionary: Page | None, pages: list[Page]
) -> DictionaryChunk | None:
    """The chunk of a flat column as codes; None where it has other pages, or too many values to gain by it.

    chunk, leaf: pyarrow's metadata of the chunk and of the column.
    """
    if dictionary is None or not _is_stored_as_is(leaf.physical_type, dtype):
        return None
    values, rows = dictionary.header.values, chunk.num_values
    if (
        values > min(MAX_DICTIONARY_VALUES, rows // _MIN_ROWS_PER_VALUE)
        or sum(p.header.values for p in pages) != rows
    ):
        return None
    levels = leaf.max_definition_level == 1
    if not _is_plain(dictionary) or not all(_is_coded(p, levels) for p in pages):
        return None
    return DictionaryChunk(dictionary, pages, chunk.compression, dtype, levels)


def _is_plain(dictionary: Page) -> bool:
    return dictionary.header.encoding in (PLAIN, PLAIN_DICTIONARY)


def _is_coded(page: Page, levels: bool) -> bool:
    """Whether a page's values are codes, after definition levels in the form of today, if any."""
    header = page.header
    if header.encoding not in (PLAIN_DICTIONARY, RLE_DICTIONARY):
        return False
    if header.kind == DATA_V2:
        return levels == (header.level_bytes > 0)
    return not levels or header.level_encoding == RLE


def _is_stored_as_is(physical_type: str, dtype: pa.DataType) -> bool:
    """Whether a file has a column's numbers in as many bytes as Arrow."""
    width = _WIDTHS.get(physical_type)
    return width is not None and _is_plain_number(dtype) and bool(dtype.bit_width == 8 * width)


def _is_plain_number(dtype: pa.DataType) -> bool:
    tests = (pa.types.is_signed_integer, pa.types.is_floating, pa.types.is_date32, pa.types.is_timestamp)
    return any(test(dtype) for test in tests)
