"""Reads the page index of Parquet files: the statistics (column index) and locations (offset index) of pages.

Spark's reader (parquet-mr) skips pages with the same index. Format: parquet.thrift and PageIndex.md of
apache/parquet-format.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from functools import partial
from struct import calcsize, unpack
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.sources.base import ColumnRange, DataFile
from kquery_spark.sources.input_file import shared_input
from kquery_spark.sources.lru_cache import LruCache
from kquery_spark.sources.parquet.footer_tables import ABSENT, Chunk, footer_tables
from kquery_spark.sources.parquet.pages import Pages
from kquery_spark.sources.parquet.thrift_compact import Cursor
from kquery_spark.sources.prefetch.byte_ranges import ByteRange
from kquery_spark.types.arrow_types import STRINGS, is_any
from kquery_spark.types.units import MICRO_NANOS

# One read fetches the indexes of the whole file if they have at most the first number of bytes; otherwise it fetches those
# of one row group, up to the second number. Column reads wait for it, so the numbers are small.
_MAX_WHOLE_BYTES, _MAX_BYTES = 1 << 20, 8 << 20
_WIDE = Context(prec=38)
_MAX_DECIMAL_BYTES = 16
_INTEGERS = ("INT32", "INT64")
_FLOAT_FORMS = {("FLOAT", pa.float32()): "<f", ("DOUBLE", pa.float64()): "<d"}
_PAGE_LOCATIONS = 1  # of OffsetIndex
_NULL_PAGES, _MIN_VALUES, _MAX_VALUES, _NULL_COUNTS = 1, 2, 3, 5  # of ColumnIndex
_INDEX_LISTS: dict[int, Callable[[Cursor], Any]] = {
    _NULL_PAGES: lambda cursor: cursor.byte() == 1,
    _MIN_VALUES: Cursor.binary,
    _MAX_VALUES: Cursor.binary,
    _NULL_COUNTS: Cursor.zigzag,
}


_REGIONS: LruCache[tuple[DataFile, ByteRange], memoryview] = LruCache(64 << 20)
"""Cached byte ranges of remote files that contain the indexes of many chunks."""


class ChunkIndexes(NamedTuple):
    """The positions of a chunk's column index (statistics) and offset index (locations); size 0 if there is none."""

    column: ByteRange
    offset: ByteRange


def chunk_indexes(footer: bytes, num_groups: int, num_leaves: int) -> list[list[ChunkIndexes]]:
    """The indexes of each chunk of each row group."""
    columns = [Chunk.COLUMN_INDEX, Chunk.COLUMN_INDEX_SIZE, Chunk.OFFSET_INDEX, Chunk.OFFSET_INDEX_SIZE]
    chunks = footer_tables(footer, num_groups, num_leaves).chunks[:, :, columns]
    chunks = np.where(chunks == ABSENT, 0, chunks)
    return [
        [ChunkIndexes(ByteRange(*chunk[:2]), ByteRange(*chunk[2:])) for chunk in group]
        for group in chunks.tolist()
    ]


class PageIndex:
    """The page index of a file.

    In a remote file, where each read is slow, one read covers the index of the whole file, or the index of one row group if
    the whole is larger than 1 MB. The methods raise ValueError if the bytes are not an index, or are not inside the file.
    """

    def __init__(self, file: DataFile, indexes: list[list[ChunkIndexes]]) -> None:
        self._file = file
        self._groups = indexes

    def ranges(self, group: int, leaf: int, physical: str, dtype: pa.DataType) -> list[ColumnRange] | None:
        """The statistics of each page of a chunk; None without a column index, or for types that cannot be decoded.

        leaf: the number of the leaf. physical: the name of its physical type. dtype: its Arrow type.
        """
        part = self._chunk_indexes(group, leaf).column
        if not part.size:
            return None
        return ranges_from_column_index(
            self._read(part, [chunk.column for chunk in self._groups[group]]), physical, dtype
        )

    def pages(self, group: int, leaf: int, chunk: ByteRange, num_rows: int) -> Pages | None:
        """The locations of the pages of a flat column's chunk; None without an offset index, or if it is inconsistent."""
        part = self._chunk_indexes(group, leaf).offset
        if not part.size:
            return None
        return pages_from_offset_index(
            self._read(part, [chunk.offset for chunk in self._groups[group]]), chunk, num_rows
        )

    def _chunk_indexes(self, group: int, leaf: int) -> ChunkIndexes:
        try:
            return self._groups[group][leaf]
        except IndexError:
            raise ValueError("the footer lacks a chunk") from None

    def _read(self, part: ByteRange, of_group: Sequence[ByteRange]) -> bytes:
        """Read the bytes of one index. of_group: the row group's indexes of the same kind, stored next to each other."""
        file = shared_input(self._file)
        if file.is_local:
            return file.read_at(part.size, part.start)
        whole = self._whole
        region = _span(of_group) if whole.size > _MAX_WHOLE_BYTES else whole
        if not (0 <= region.start < region.end <= self._file.size and region.size <= _MAX_BYTES):
            raise ValueError(f"there is no index from {region.start} to {region.end}")
        key = (self._file, region)
        data = _REGIONS.get(key)
        if data is None:
            data = memoryview(file.read_at(region.size, region.start))
            _REGIONS.put(key, data)
        return bytes(data[part.start - region.start : part.end - region.start])

    @cached_property
    def _whole(self) -> ByteRange:
        return _span([part for group in self._groups for chunk in group for part in chunk])


def _span(parts: Sequence[ByteRange]) -> ByteRange:
    """The smallest byte range that covers all parts that are present."""
    present = [part for part in parts if part.size]
    start = min(part.start for part in present)
    return ByteRange(start, max(part.end for part in present) - start)


def pages_from_offset_index(index: bytes, chunk: ByteRange, num_rows: int) -> Pages | None:
    """Return the pages of a flat column's chunk from its offset index; None if their row counts do not match the chunk's.

    Raises ValueError for bytes that are not an offset index.
    """
    cursor = Cursor(index)
    locations: list[tuple[int, int, int]] = []
    for field, kind, _ in cursor.fields():
        if field == _PAGE_LOCATIONS:
            locations = [_location(cursor) for _ in range(cursor.list_size())]
        else:
            cursor.skip(kind)
    if not locations:
        return None
    # a last entry, the end of the chunk, lets the checks below cover the last page, too
    offsets, sizes, starts = np.array([*locations, (chunk.end, 0, num_rows)], np.int64).T.copy()
    are_in_order = (
        chunk.start <= offsets[0]
        and (offsets[1:] >= offsets[:-1] + sizes[:-1]).all()
        and (offsets[:-1] <= chunk.end).all()
        and ((sizes[:-1] > 0) & (sizes[:-1] <= chunk.size)).all()
        and starts[0] == 0
        and (starts[1:] > starts[:-1]).all()
    )
    if not are_in_order:
        return None
    # the offset index does not list the dictionary page, which takes the bytes before the first data page
    first = int(offsets[0])
    dictionary = (chunk.start, first - chunk.start) if first > chunk.start else None
    return Pages(dictionary, offsets[:-1], sizes[:-1], starts)


def _location(cursor: Cursor) -> tuple[int, int, int]:
    """The file offset of a page, its size with the header, and its first row; -1 for missing fields."""
    values = dict.fromkeys((1, 2, 3), -1)
    for field, kind, _ in cursor.fields():
        if field in values:
            values[field] = cursor.zigzag()
        else:
            cursor.skip(kind)
    return values[1], values[2], values[3]


def ranges_from_column_index(index: bytes, physical: str, dtype: pa.DataType) -> list[ColumnRange] | None:
    """Decode a column index into one ColumnRange per page, as for row groups; None for types that cannot be decoded.

    dtype: the Arrow type of the column. Raises ValueError for bytes that are not a column index.
    """
    decode = _decoder(physical, dtype)
    if decode is None:
        return None
    lists: dict[int, list[Any]] = {}
    cursor = Cursor(index)
    for field, kind, _ in cursor.fields():
        read = _INDEX_LISTS.get(field)
        if read is None:
            cursor.skip(kind)
        else:
            lists[field] = [read(cursor) for _ in range(cursor.list_size())]
    all_null, lows, highs = (lists.get(field, []) for field in (_NULL_PAGES, _MIN_VALUES, _MAX_VALUES))
    nulls = lists.get(_NULL_COUNTS) or [None] * len(all_null)
    if len(set(map(len, (all_null, lows, highs, nulls)))) > 1:
        raise ValueError("a column index has lists of different lengths")
    return [
        ColumnRange(None, None, count) if is_null else ColumnRange(decode(low), decode(high), count)
        for is_null, low, high, count in zip(all_null, lows, highs, nulls, strict=True)
    ]


def _decoder(physical: str, dtype: pa.DataType) -> Callable[[bytes], Any] | None:
    """The function that decodes a minimum or maximum from its bytes; None for other types."""
    if pa.types.is_decimal(dtype):
        return partial(_decimal, "little" if physical in _INTEGERS else "big", dtype.scale)
    if physical in _INTEGERS:
        return _integer_decoder(dtype)
    if physical == "BYTE_ARRAY" and is_any(dtype, STRINGS):
        return bytes
    form = _FLOAT_FORMS.get((physical, dtype))
    return None if form is None else partial(_float, form)


def _integer_decoder(dtype: pa.DataType) -> Callable[[bytes], int] | None:
    if pa.types.is_timestamp(dtype):
        factor = {"ms": 1000, "us": 1}.get(dtype.unit)
        return None if factor is None else lambda data: _signed(data) * factor
    if pa.types.is_time64(dtype):
        return (lambda data: _signed(data) * MICRO_NANOS) if dtype.unit == "us" else None
    return _signed if pa.types.is_signed_integer(dtype) or pa.types.is_date32(dtype) else None


def _decimal(order: Literal["little", "big"], scale: int, data: bytes) -> Decimal:
    if len(data) > _MAX_DECIMAL_BYTES:
        raise ValueError("a statistic of a column index has the wrong length")
    return Decimal(int.from_bytes(data, order, signed=True)).scaleb(-scale, _WIDE)


def _signed(data: bytes) -> int:
    if len(data) not in (4, 8):
        raise ValueError("a statistic of a column index has the wrong length")
    return int.from_bytes(data, "little", signed=True)


def _float(form: str, data: bytes) -> float:
    if len(data) != calcsize(form):
        raise ValueError("a statistic of a column index has the wrong length")
    value: float = unpack(form, data)[0]
    return value
