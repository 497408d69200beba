"""Reads a flat column of row groups with compiled loops, from the bytes of its chunks to an Arrow array.

    bytes of the column chunks
      |  page_table          writes a row of integers for each page header
      v
    pages                    decompress_pages or pyarrow's codec yields the dictionary and the pages with selected rows
      |  plain_strings       replaces delta-encoded strings by plain ones
      |  convert_pages       converts values that Arrow stores in another way: INT96, Boolean values, decimals in bytes, and
      |                      numbers that are delta-encoded or byte-stream-split
      |  decode_values       decodes fixed-width values or dictionary indices, of all rows or of the selected rows
      |  decode_strings      decodes strings, or the strings of the dictionary page
      v
    Arrow array of the type that pyarrow would return, except that string views become strings with offsets

A loop takes all pages of all chunks in one call, so a batch of several small row groups takes hardly more calls than one of
a single row group. The dictionaries of the chunks are concatenated (see ``parquet_page_table.py``). Conditions on a column
are evaluated once per dictionary entry, and the indices that ``packed_indices`` returns are compared afterwards.

The functions return None if the loops cannot read one of the chunks: one with another type, codec or encoding, or a damaged
one. The caller then lets pyarrow read the column, which also reports damage.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.kernels.parquet_page_table import (
    AS_IN_ARROW,
    BIG_ENDIAN,
    BITS,
    BODY,
    COMPRESSED,
    COMPRESSED_PAGES,
    CONVERSION_SLACK,
    DATA,
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    ENCODING,
    ENTRIES,
    FIRST_ENTRY,
    INDEX_PAGES,
    KIND,
    LEVEL_BYTES,
    MAX_CONVERTED_BYTES,
    PAGE_FIELDS,
    PLAIN,
    PLAIN_DICTIONARY,
    RAW_BYTES,
    RLE_DICTIONARY,
    SIZE,
    SIZE_BYTES,
    TOO_MANY_PAGES,
    TOTALS,
    VALUES,
)
from kquery_spark.sources.dictionary_column import MAX_DICTIONARY_VALUES, PackedIndices
from kquery_spark.sources.parquet.flat_chunk import (
    INDEX_LAYOUT,
    MAPPED_INDEX_LAYOUT,
    FlatChunk,
    ValueLayout,
    coalesced_chunk,
)
from kquery_spark.sources.parquet.page_codecs import LOOP_CODECS, Bytes, decompress_chunk_pages
from kquery_spark.types.vector import Flags, Int64s

_DICTIONARY_ENCODINGS = {PLAIN, PLAIN_DICTIONARY}
_NEEDS_NO_CONVERSION = {PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY}
_DELTA_STRINGS = {DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY}
_FIRST_PAGES, _MAX_PAGES = 64, 1 << 16  # rows of a page table at the first attempt, and at most
_NO_ROWS = np.empty(0, np.int64)
_NO_BYTES = np.empty(0, np.uint8)


class _Pages(NamedTuple):
    """The page table of the chunks.

    dictionaries: the table rows of the dictionary pages, one for each chunk that has a dictionary. data: the table rows of
    the data pages. are_compressed: whether any data page is compressed. are_indices: whether all data pages store dictionary
    indices. encodings: those of the data pages.
    """

    dictionaries: Int64s
    data: Int64s
    are_compressed: bool
    are_indices: bool
    encodings: frozenset[int]

    @property
    def entries(self) -> int:
        """The number of values in all dictionaries together."""
        return int(self.dictionaries[:, VALUES].sum())

    def with_rows(self, rows: Int64s | None) -> Flags:
        """Return a flag per data page: True if it has a selected row. rows: None selects all.

        For pages of 100, 100 and 50 rows and the rows [3, 7, 220] the flags are [True, False, True].
        """
        if rows is None:
            return np.ones(len(self.data), np.bool_)
        ends = np.searchsorted(rows, np.cumsum(self.data[:, VALUES]))
        has_rows: Flags = np.diff(ends, prepend=0) > 0
        return has_rows


class ColumnReader:
    """Decodes a column of one or more row groups of a file.

    chunks: the column's chunks in the order of the rows, all of the same ``kind``. data: their bytes as stored in the file,
    one chunk after the other.
    """

    def __init__(self, chunks: Sequence[FlatChunk], kernels: ModuleType, data: Bytes) -> None:
        self._chunks = chunks
        self.chunk = coalesced_chunk(chunks)
        self._kernels = kernels
        self._data = data

    def read(self, rows: Int64s | None = None) -> pa.Array | None:
        """Decode the values of ``rows`` (positions in rising order; None: all rows); None if the loops cannot."""
        pages, layout = self._pages, self.chunk.layout
        if pages is None or self._dictionary_pages is None:
            return None
        if layout is not None:
            return self._fixed_width(rows, layout, self._dictionary_numbers)
        if pa.types.is_dictionary(self.chunk.dtype):
            return self._dictionary_array(rows) if pages.are_indices else None
        return self._strings(rows)

    def dictionary_values(self) -> pa.Array | None:
        """Return the dictionary of numbers in index order; None if it is too large, or if a page does not store indices.

        For several chunks, it is the concatenation of their dictionaries.
        """
        pages, layout = self._pages, self.chunk.layout
        if pages is None or not pages.are_indices or layout is None:
            return None
        count, limit = pages.entries, max(chunk.max_dictionary_values for chunk in self._chunks)
        if count > MAX_DICTIONARY_VALUES or (pages.dictionaries[:, VALUES] > limit).any():
            return None
        values = self._dictionary_numbers
        if values is None or len(values) < count * layout.width:
            return None
        # The bytes of an uncompressed page may not be aligned, so they are copied.
        return layout.array(count, None, 0, pa.py_buffer(values[: count * layout.width].copy()))

    def packed_indices(self) -> PackedIndices | None:
        """Decompress all pages and return their dictionary indices, which stay bit-packed; None for a damaged page."""
        pages = self._pages
        stored = None if pages is None else self._decompressed(pages.with_rows(None))
        return None if stored is None else PackedIndices(*stored, self.chunk.has_levels)

    @cached_property
    def _pages(self) -> _Pages | None:
        """The page table of all chunks; None if a header is not as expected."""
        dictionaries, tables = [], []
        start = entries = compressed = index_pages = 0
        encodings: set[int] = set()
        for chunk in self._chunks:
            found = self._page_table(chunk, self._data[start : start + chunk.byte_range.size])
            if found is None:
                return None
            pages, totals = found
            if start:
                pages[:, BODY] += start
                pages[:, FIRST_ENTRY] = entries
            if pages[0, KIND] >= 0:
                dictionaries.append(pages[:1])
                entries += int(pages[0, VALUES])
                index_pages += totals[INDEX_PAGES]
            tables.append(pages[1:])
            start += chunk.byte_range.size
            compressed += totals[COMPRESSED_PAGES]
            encodings.update(pages[1:, ENCODING].tolist())
        if not self.chunk.page_encodings.issuperset(encodings):
            return None
        data = tables[0] if len(tables) == 1 else np.concatenate(tables)
        return _Pages(
            np.concatenate(dictionaries) if dictionaries else data[:0],
            data,
            compressed > 0,
            len(dictionaries) == len(tables) and index_pages == len(data),
            frozenset(encodings),
        )

    def _page_table(self, chunk: FlatChunk, data: Bytes) -> tuple[Int64s, list[int]] | None:
        """Return the page table of one chunk, and its totals. The table grows until all pages fit."""
        totals = np.empty(TOTALS, np.int64)
        room = _FIRST_PAGES
        while True:
            pages = np.empty((room, PAGE_FIELDS), np.int64)
            count = self._kernels.page_table(
                data, chunk.rows, chunk.has_levels, LOOP_CODECS[chunk.codec], pages, totals
            )
            if count != TOO_MANY_PAGES or room >= _MAX_PAGES:
                break
            room *= 8
        if count < 0 or totals[RAW_BYTES] > chunk.raw_size:
            return None
        return pages[: count + 1], totals.tolist()

    @cached_property
    def _dictionary_pages(self) -> tuple[Bytes, Int64s] | None:
        """The dictionary pages, decompressed, with a table in which they are plain data pages without NULLs.

        None if one of them is damaged or not plain-encoded.
        """
        if self._pages is None:
            return None
        data, table = self._data, self._pages.dictionaries
        if not len(table):
            return _NO_BYTES, table
        if not _DICTIONARY_ENCODINGS.issuperset(table[:, ENCODING].tolist()):
            return None
        if table[:, COMPRESSED].any():
            stored = decompress_chunk_pages(
                self.chunk.codec, self._kernels, data, table, np.ones(len(table), np.bool_)
            )
            if stored is None:
                return None
            data, table = stored
        table = table.copy()
        table[:, KIND], table[:, ENCODING], table[:, LEVEL_BYTES] = DATA, PLAIN, 0
        table[:, FIRST_ENTRY] = table[:, ENTRIES] = 0
        return data, table

    def _decompressed(self, is_needed: Flags) -> tuple[Bytes, Int64s] | None:
        """Return the raw bytes of the needed data pages, with a page table that points into them."""
        pages = self._pages
        if pages is None:
            return None
        if not pages.are_compressed:
            return self._data, pages.data
        return decompress_chunk_pages(self.chunk.codec, self._kernels, self._data, pages.data, is_needed)

    def _with_plain_strings(self, is_needed: Flags) -> tuple[Bytes, Int64s] | None:
        """Return the raw bytes of the needed data pages, in which delta-encoded strings are plain, and a page table."""
        pages, stored, layout = self._pages, self._decompressed(is_needed), self.chunk.layout
        if stored is None or pages is None or _DELTA_STRINGS.isdisjoint(pages.encodings):
            return stored
        # ``plain_strings`` allocates four bytes for each length of a page before it checks the page
        if SIZE_BYTES * self.chunk.rows > MAX_CONVERTED_BYTES:
            return None
        data, table = stored[0], stored[1].copy()
        size = layout.stored if layout is not None and layout.kind == BIG_ENDIAN else 0
        is_sound, strings = self._kernels.plain_strings(data, table, is_needed, self.chunk.has_levels, size)
        return (strings, table) if is_sound else None

    def _fixed_width(
        self, rows: Int64s | None, layout: ValueLayout, dictionary: Bytes | None
    ) -> pa.Array | None:
        """Decode values of a layout (``INDEX_LAYOUT``: indices). dictionary: all dictionary values, as in Arrow."""
        pages = self._pages
        if pages is None or dictionary is None:
            return None
        is_needed = pages.with_rows(rows)
        stored = self._with_plain_strings(is_needed)
        if stored is not None and not pages.are_indices:
            stored = self._in_arrow_layout(*stored, layout, is_needed, levels=self.chunk.has_levels)
        if stored is None:
            return None
        count = self.chunk.rows if rows is None else len(rows)
        out = pa.allocate_buffer(count * (layout.width or layout.stored))
        valid = np.empty(count if self.chunk.has_levels else 0, np.uint8)
        nulls = self._kernels.decode_values(
            *stored,
            dictionary,
            pages.entries,
            layout.width,
            self.chunk.has_levels,
            *_selected(rows),
            valid,
            np.frombuffer(out, np.uint8),
        )
        return None if nulls < 0 else layout.array(count, _bitmap(valid, nulls), nulls, out)

    @cached_property
    def _dictionary_numbers(self) -> Bytes | None:
        """The values of the dictionaries as ``decode_values`` copies them; None if they are damaged or strings."""
        stored, layout = self._dictionary_pages, self.chunk.layout
        if stored is None:
            return None
        data, table = stored
        if not len(table):
            return _NO_BYTES
        # The format has no dictionaries of Boolean values.
        if layout is None or layout.kind == BITS:
            return None
        # The number of values is checked before memory is allocated.
        if (table[:, VALUES] * layout.stored > table[:, SIZE]).any():
            return None
        converted = self._in_arrow_layout(data, table, layout, np.ones(len(table), np.bool_), levels=False)
        if converted is None:
            return None
        data, table = converted
        sizes = table[:, VALUES] * layout.width
        if (sizes > table[:, SIZE]).any():
            return None
        parts = [
            data[at : at + size] for at, size in zip(table[:, BODY].tolist(), sizes.tolist(), strict=True)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _in_arrow_layout(
        self, data: Bytes, pages: Int64s, layout: ValueLayout, is_needed: Flags, *, levels: bool
    ) -> tuple[Bytes, Int64s] | None:
        """Convert the plain values of the needed pages; returns them with a page table that points to them."""
        if layout.kind == AS_IN_ARROW and _NEEDS_NO_CONVERSION.issuperset(pages[:, ENCODING].tolist()):
            return data, pages
        table, needed = pages.copy(), pages[is_needed]
        room = int(needed[:, SIZE].sum() + needed[:, VALUES].sum() * layout.width) + CONVERSION_SLACK
        if room > MAX_CONVERTED_BYTES:
            return None
        out = np.empty(room, np.uint8)
        is_sound = self._kernels.convert_pages(
            data, table, is_needed, levels, layout.kind, layout.stored, layout.width, out
        )
        return (out, table) if is_sound else None

    def _dictionary_array(self, rows: Int64s | None) -> pa.Array | None:
        """Decode the indices and combine them with the dictionary's strings.

        The dictionaries of several chunks usually have strings in common. ``dictionary_encode`` removes the duplicates and
        returns, for each string of the concatenated dictionaries, its index in the common dictionary. ``decode_values`` then
        treats these new indices as a dictionary of integers: it replaces each stored index by the new one.
        """
        strings = self._dictionary_strings
        if strings is None:
            return None
        if len(self._chunks) == 1:
            indices = self._fixed_width(rows, INDEX_LAYOUT, _NO_BYTES)
        else:
            encoded = strings.dictionary_encode()
            strings, common = encoded.dictionary, np.asarray(encoded.indices, np.int32)
            indices = self._fixed_width(rows, MAPPED_INDEX_LAYOUT, common.view(np.uint8))
        return None if indices is None else pa.DictionaryArray.from_arrays(indices, strings, safe=False)

    @cached_property
    def _dictionary_strings(self) -> pa.Array | None:
        """The strings of the dictionary pages, which have the same layout as plain data pages without NULLs."""
        pages, stored = self._pages, self._dictionary_pages
        if pages is None or stored is None or not len(pages.dictionaries):
            return None
        if SIZE_BYTES * pages.entries > len(stored[0]):
            return None
        return self._decode_strings(self.chunk.dtype.value_type, stored, None, pages.entries, levels=False)

    def _strings(self, rows: Int64s | None) -> pa.Array | None:
        pages = self._pages
        stored = None if pages is None else self._with_plain_strings(pages.with_rows(rows))
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
        dictionaries = self._dictionary_pages
        if dictionaries is None:
            return None
        offsets = pa.allocate_buffer(4 * (count + 1))
        valid = np.empty(count if levels else 0, np.uint8)
        nulls, text = self._kernels.decode_strings(
            *stored,
            *dictionaries,
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
    """Return two arguments of the loops: whether rows are selected, and the selected rows."""
    return (False, _NO_ROWS) if rows is None else (True, rows)


def _bitmap(valid: Bytes, nulls: int) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
