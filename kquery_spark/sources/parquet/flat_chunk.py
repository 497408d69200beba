"""Describes the column chunks that the compiled loops can read, and how their values are stored.

They read flat columns only: columns that are neither nested nor repeated, with one value or NULL in each row.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.kernels.parquet_page_table import (
    AS_IN_ARROW,
    BIG_ENDIAN,
    BITS,
    ENCODINGS,
    INT96,
    INT96_BYTES,
    SIZED_BIG_ENDIAN,
)
from kquery_spark.sources.dictionary_column import MAX_DICTIONARY_VALUES
from kquery_spark.sources.parquet.page_codecs import (
    CODECS_AS_FAST_AS_PYARROW,
    CODECS_DECOMPRESSED_BY_LOOPS,
    LOOP_CODECS,
)
from kquery_spark.sources.prefetch.byte_ranges import ByteRange

_WIDTHS = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
_NUMBERS = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_date32,
    pa.types.is_time,
    pa.types.is_timestamp,
)
_MAX_DECIMAL_BYTES, _MAX_NARROW_DIGITS = 16, 18
_MIN_SIZED_BYTES = 5  # four bytes of the size, and at least one of the integer
INDEX_ENCODINGS = {"RLE_DICTIONARY", "PLAIN_DICTIONARY"}
# The encodings that the footer of a readable chunk may list. Old writers list BIT_PACKED for the repetition levels, although
# flat columns have none.
_ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED", *INDEX_ENCODINGS}
DELTA_STRING_ENCODINGS = {"DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"}
_SPLIT = "BYTE_STREAM_SPLIT"
_ENCODINGS_OF_TYPES = {
    "INT32": {"DELTA_BINARY_PACKED", _SPLIT},
    "INT64": {"DELTA_BINARY_PACKED", _SPLIT},
    "FLOAT": {_SPLIT},
    "DOUBLE": {_SPLIT},
    "FIXED_LEN_BYTE_ARRAY": {"DELTA_BYTE_ARRAY", _SPLIT},
    "BYTE_ARRAY": DELTA_STRING_ENCODINGS,
}
_MAX_HEADER_BYTES = 1 << 12  # more than the headers of the pages of a short chunk take
# with fewer rows per value, decoding the dictionary and testing its values costs too much
_MIN_ROWS_PER_VALUE = 32


class ValueLayout(NamedTuple):
    """How fixed-width values are stored and decoded.

    dtype: the type of the decoded array. stored: the bytes of a plain value in the file, or the smallest number if sizes
    vary; 1 for bits. kind: ``AS_IN_ARROW``, or how ``convert_pages`` converts the values. width: the bytes of a value that
    ``decode_values`` writes.
    """

    dtype: pa.DataType
    stored: int
    kind: int = AS_IN_ARROW
    width: int = 0

    def array(self, count: int, validity: pa.Buffer | None, nulls: int, values: Any) -> pa.Array:
        """Return the array of decoded values. values: a buffer with ``width`` bytes for each."""
        if self.kind == BITS:
            values = pa.py_buffer(np.packbits(np.frombuffer(values, np.uint8), bitorder="little"))
        elif self.dtype.bit_width < 8 * self.width:
            short = np.dtype(f"i{self.dtype.bit_width // 8}")
            values = pa.py_buffer(np.frombuffer(values, np.int32).astype(short))
        return pa.Array.from_buffers(self.dtype, count, [validity, values], nulls)


INDEX_LAYOUT = ValueLayout(pa.int32(), 4)
"""The layout of dictionary indices: width 0 makes ``decode_values`` write the indices."""
MAPPED_INDEX_LAYOUT = ValueLayout(pa.int32(), 4, AS_IN_ARROW, 4)
"""The layout of dictionary indices that ``decode_values`` maps to other indices, with the map as its dictionary."""


@dataclass(frozen=True)
class FlatChunk:
    """A flat column of one row group, or of several row groups that ``coalesced_chunk`` describes as one.

    byte_range: the position of the chunk in its file. raw_size: bytes of its pages after decompression, headers included.
    dtype: the Arrow type to return, a dictionary type for strings that are read as indices. layout: how the values are
    stored; None for strings. has_levels: whether the column has definition levels, so that rows can be NULL.
    encodings: those that the footer lists. page_encodings: the numbers of the encodings that pages with values of this type
    may have. rows: the number of rows in the row group.
    """

    byte_range: ByteRange
    raw_size: int
    codec: str
    dtype: pa.DataType
    layout: ValueLayout | None
    has_levels: bool
    encodings: frozenset[str]
    page_encodings: frozenset[int]
    rows: int

    @property
    def has_dictionary(self) -> bool:
        """True if any page stores dictionary indices."""
        return not INDEX_ENCODINGS.isdisjoint(self.encodings)

    @property
    def max_dictionary_values(self) -> int:
        """The largest number of distinct values for which conditions are evaluated on the dictionary."""
        return min(MAX_DICTIONARY_VALUES, self.rows // _MIN_ROWS_PER_VALUE)

    @cached_property
    def kind(self) -> Hashable:
        """Chunks of a column with equal kinds can be read together."""
        return self.codec, self.dtype, self.layout, self.has_levels, self.encodings, self.page_encodings

    @cached_property
    def may_have_small_dictionary(self) -> bool:
        """False if the footer shows that ``dictionary_values`` would return None, so that the chunk need not be read for it.

        If the dictionary is small enough and all pages store indices, the raw bytes of the chunk are the values of the
        dictionary, the bit-packed indices, and levels and headers, for which one byte for each row is plenty. Sized decimals
        may have up to 15 bytes more than ``layout.stored``. The byte for each row covers these, too, because there are at
        least ``_MIN_ROWS_PER_VALUE`` rows for each value.
        """
        if not self.has_dictionary or self.layout is None:
            return False
        count = self.max_dictionary_values
        dictionary_bytes = count * self.layout.stored
        index_bytes = self.rows * count.bit_length() // 8
        return bool(self.raw_size <= dictionary_bytes + index_bytes + self.rows + _MAX_HEADER_BYTES)

    @property
    def loops_are_faster(self) -> bool:
        """True if the loops decode all rows of the chunk in less time than pyarrow, as ``benchmarks.scan`` measures it.

        If only some rows are selected, the loops are faster for every chunk.
        """
        if pa.types.is_dictionary(self.dtype):
            return True
        if self.layout is None:
            has_deltas = not DELTA_STRING_ENCODINGS.isdisjoint(self.encodings)
            return self.codec in CODECS_DECOMPRESSED_BY_LOOPS or self.has_dictionary or has_deltas
        if _SPLIT in self.encodings:
            return self.codec in CODECS_AS_FAST_AS_PYARROW
        return self.codec in CODECS_AS_FAST_AS_PYARROW or self.has_levels or self.layout.kind != AS_IN_ARROW


def flat_chunk(
    chunk: Any, leaf: Any, dtype: pa.DataType, rows: int, byte_range: ByteRange
) -> FlatChunk | None:
    """Describe a chunk for the loops; None for nested columns and for types and codecs that the loops do not read.

    chunk, leaf: pyarrow's metadata of the chunk and of the column. dtype: the type that pyarrow gives the column.
    """
    dtype, codec, levels = _without_views(dtype), chunk.compression, leaf.max_definition_level
    is_flat = leaf.max_repetition_level == 0 and levels <= 1 and chunk.num_values == rows
    readable = _ENCODINGS | _ENCODINGS_OF_TYPES.get(leaf.physical_type, set())
    if not is_flat or codec not in LOOP_CODECS or not readable.issuperset(chunk.encodings):
        return None
    layout = _layout(leaf, dtype)
    if layout is None and not (leaf.physical_type == "BYTE_ARRAY" and _is_string(dtype)):
        return None
    return FlatChunk(
        byte_range,
        chunk.total_uncompressed_size,
        codec,
        dtype if layout is None else layout.dtype,
        layout,
        levels == 1,
        frozenset(chunk.encodings),
        frozenset(number for name, number in ENCODINGS.items() if name in readable),
        rows,
    )


def coalesced_chunk(chunks: Sequence[FlatChunk]) -> FlatChunk:
    """Describe chunks of a column that have the same kind as one chunk. Of its byte range, only the size is meaningful."""
    first = chunks[0]
    if len(chunks) == 1:
        return first
    size = sum(chunk.byte_range.size for chunk in chunks)
    return replace(
        first,
        byte_range=ByteRange(first.byte_range.start, size),
        raw_size=sum(chunk.raw_size for chunk in chunks),
        rows=sum(chunk.rows for chunk in chunks),
    )


def has_delta_strings(metadata: Any, leaf: int) -> bool:
    """True if a row group has delta-encoded strings in a column, which pyarrow does not read as a dictionary.

    Writers of version 2, such as Spark with ``parquet.writer.version=v2``, use them without a dictionary, and in the pages
    after the dictionary became too large. metadata: pyarrow's ``FileMetaData``. leaf: the number of the column.
    """
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return any(not DELTA_STRING_ENCODINGS.isdisjoint(group.column(leaf).encodings) for group in groups)


def _layout(leaf: Any, dtype: pa.DataType) -> ValueLayout | None:
    """The layout of the values of a column; None for strings and for types that the loops do not read."""
    physical_type = leaf.physical_type
    if physical_type in _WIDTHS:
        width = _WIDTHS[physical_type]
        # the file stores 8-bit and 16-bit integers in 32 bits
        is_short_integer = width == 4 and pa.types.is_integer(dtype) and dtype.bit_width < 32
        is_number = any(is_type(dtype) for is_type in _NUMBERS) and (
            is_short_integer or dtype.bit_width == 8 * width
        )
        return ValueLayout(dtype, width, AS_IN_ARROW, width) if is_number else None
    if physical_type == "INT96":
        return ValueLayout(pa.timestamp("us"), INT96_BYTES, INT96, 8)
    if physical_type == "BOOLEAN":
        return ValueLayout(dtype, 1, BITS, 1)
    if not pa.types.is_decimal128(dtype):
        return None
    fits_int64 = dtype.precision <= _MAX_NARROW_DIGITS  # the engine uses the unscaled integers
    decoded, width = (pa.int64(), 8) if fits_int64 else (dtype, 16)
    if physical_type == "BYTE_ARRAY":
        return ValueLayout(decoded, _MIN_SIZED_BYTES, SIZED_BIG_ENDIAN, width)
    is_fixed = physical_type == "FIXED_LEN_BYTE_ARRAY" and leaf.length <= _MAX_DECIMAL_BYTES
    return ValueLayout(decoded, leaf.length, BIG_ENDIAN, width) if is_fixed else None


def _without_views(dtype: pa.DataType) -> pa.DataType:
    """Replace string views and binary views, which the engine does not use, by strings and binaries with offsets."""
    if pa.types.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, _without_views(dtype.value_type))
    if pa.types.is_string_view(dtype):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(dtype) else dtype


def _is_string(dtype: pa.DataType) -> bool:
    value_type = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    return bool(pa.types.is_string(value_type) or pa.types.is_binary(value_type))
