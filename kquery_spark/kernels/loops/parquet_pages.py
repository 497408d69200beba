"""Parses the page headers of a Parquet column chunk.

A column chunk is a sequence of pages, each behind a header in Thrift's compact protocol (parquet.thrift of
apache/parquet-format):

    header | dictionary page | header | data page | header | data page | ...

``page_table`` reads all headers of a chunk in one call and writes a row of integers for each page. The header of a data page
with 100 values in 80 bytes, stored uncompressed, has these bytes:

    15 00        field 1, I32: type 0, a data page
    15 A0 01     field 2, I32: 80 bytes after decompression (zigzag varints: A0 01 is 160, or 80)
    15 A0 01     field 3, I32: 80 bytes as stored
    2C           field 5, struct: DataPageHeader
      15 C8 01   field 1, I32: 100 values
      15 00      field 2, I32: encoding 0, PLAIN
      15 06      field 3, I32: encoding 3, RLE, of the definition levels
      15 06 00   field 4, I32: encoding 3, RLE, of the repetition levels; end of DataPageHeader
    00           end of PageHeader

No function trusts the bytes: a position past the end, a negative size or an unknown kind of page makes the result -1. The
caller then lets pyarrow read the chunk, which reports the damage.

Positions may run past ``end`` by a few bytes, because ``byte_at`` returns 0 there. This keeps the loops free of checks; the
callers compare the final position with ``end``.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import int64, uint8, uint64, uintp

from kquery_spark.kernels.loops.parquet_runs import varint
from kquery_spark.kernels.parquet_page_table import (
    AS_STORED,
    BODY,
    COMPRESSED,
    COMPRESSED_PAGES,
    DATA,
    DATA_V2,
    DICTIONARY,
    ENCODING,
    ENTRIES,
    FIRST_ENTRY,
    HEADER_KIND,
    INDEX_PAGES,
    KIND,
    LEVEL_BYTES,
    LEVEL_ENCODING,
    PLAIN_DICTIONARY,
    RAW_BYTES,
    RAW_SIZE,
    RLE,
    RLE_DICTIONARY,
    SIZE,
    SNAPPY,
    TOO_MANY_PAGES,
    VALUES,
)

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 12
_UNKNOWN, _MAX_SIZE = -1, (1 << 31) - 1
_NUM_VALUES = 1
_DATA_ENCODING, _DATA_LEVEL_ENCODING = 2, 3
_V2_ROWS, _V2_ENCODING, _V2_DEFINITION_BYTES, _V2_REPETITION_BYTES, _V2_COMPRESSED = 3, 4, 5, 6, 7
_PAGE_KIND, _PAGE_RAW_SIZE, _PAGE_SIZE = 1, 2, 3
_DATA_HEADER, _DICTIONARY_HEADER, _DATA_V2_HEADER = 5, 7, 8

Bytes = numba.types.Array(numba.uint8, 1, "C", readonly=True)


@numba.njit(inline="always")
def byte_at(data: Any, at: Any, end: Any) -> Any:
    """Read a byte as an integer; 0 past the end, which ends every Thrift struct and varint, so that all loops terminate."""
    return int64(data[at]) if at < end else int64(0)


@numba.njit
def _varint(data: Any, at: Any, end: Any) -> Any:
    """Read a varint; returns it and the position after it, which is past ``end`` if the bytes end too early."""
    value, after = varint(data, uintp(at), uintp(end))
    return int64(value), int64(after)


@numba.njit
def _zigzag(data: Any, at: Any, end: Any) -> Any:
    """Read a signed integer; returns it and the position after it."""
    value, at = _varint(data, at, end)
    return int64(uint64(value) >> uint64(1)) ^ -(value & 1), at


@numba.njit
def _skipped(data: Any, at: Any, end: Any, kind: Any) -> Any:
    """Return the position after a value of a Thrift type; past the end for lists and maps, which page headers do not have.

    The loop also skips nested structs without recursion: ``depth`` counts the open ones. The outer loop skips a value of
    type ``kind``, and the inner loop reads the next field header, or closes structs that end.
    """
    depth = 0
    while at <= end:
        if kind == _STRUCT:
            depth += 1
        elif kind == _BYTE:
            at += 1
        elif kind in (_I16, _I32, _I64):
            _, at = _varint(data, at, end)
        elif kind == _DOUBLE:
            at += 8
        elif kind == _BINARY:
            size, at = _varint(data, at, end)
            if size < 0 or size > end - at:
                return end + 1
            at += size
        elif kind != _TRUE and kind != _FALSE:
            return end + 1
        while depth > 0:
            byte = byte_at(data, at, end)
            at += 1
            if byte == 0:
                depth -= 1
            else:
                if byte >> 4 == 0:
                    _, at = _varint(data, at, end)
                kind = byte & 15
                break
        if depth == 0:
            return at
    return at


@numba.njit
def _inner_header(data: Any, at: Any, end: Any, kind: Any, page: Any) -> Any:
    """Read a DataPageHeader, DictionaryPageHeader or DataPageHeaderV2 into a row; returns the position after it.

    kind: the type of page that has this header. Fields that are not I32 are skipped, except for ``is_compressed`` of version
    2, a boolean whose value is the field's type.
    """
    page[HEADER_KIND] = kind
    field = int64(0)
    while at <= end:
        byte = byte_at(data, at, end)
        at += 1
        if byte == 0:
            break
        thrift_type = byte & 15
        if byte >> 4:
            field += byte >> 4
        else:
            field, at = _zigzag(data, at, end)
        if thrift_type != _I32:
            if kind == DATA_V2 and field == _V2_COMPRESSED and thrift_type <= _FALSE:
                page[COMPRESSED] = thrift_type == _TRUE
            at = _skipped(data, at, end, thrift_type)
            continue
        number, at = _zigzag(data, at, end)
        if field == _NUM_VALUES:
            page[VALUES] = number
        elif kind != DATA_V2:
            if field == _DATA_ENCODING:
                page[ENCODING] = number
            elif field == _DATA_LEVEL_ENCODING and kind == DATA:
                page[LEVEL_ENCODING] = number
        elif field == _V2_ENCODING:
            page[ENCODING] = number
        elif field == _V2_DEFINITION_BYTES:
            page[LEVEL_BYTES] = number
        elif (field == _V2_REPETITION_BYTES and number != 0) or (
            field == _V2_ROWS and number != page[VALUES]
        ):  # a column inside lists
            return end + 1
    return at


@numba.njit
def _page_header(data: Any, at: Any, end: Any, page: Any) -> Any:
    """Read one PageHeader into a row of the table; returns the position after it."""
    page[:] = _UNKNOWN
    page[LEVEL_BYTES] = 0
    page[COMPRESSED] = 1
    field = int64(0)
    while at <= end:
        byte = byte_at(data, at, end)
        at += 1
        if byte == 0:
            break
        thrift_type = byte & 15
        if byte >> 4:
            field += byte >> 4
        else:
            field, at = _zigzag(data, at, end)
        if thrift_type == _I32 and field == _PAGE_KIND:
            page[KIND], at = _zigzag(data, at, end)
        elif thrift_type == _I32 and field == _PAGE_RAW_SIZE:
            page[RAW_SIZE], at = _zigzag(data, at, end)
        elif thrift_type == _I32 and field == _PAGE_SIZE:
            page[SIZE], at = _zigzag(data, at, end)
        elif thrift_type == _STRUCT and field == _DATA_HEADER:
            at = _inner_header(data, at, end, DATA, page)
        elif thrift_type == _STRUCT and field == _DICTIONARY_HEADER:
            at = _inner_header(data, at, end, DICTIONARY, page)
        elif thrift_type == _STRUCT and field == _DATA_V2_HEADER:
            at = _inner_header(data, at, end, DATA_V2, page)
        else:
            at = _skipped(data, at, end, thrift_type)
    return at


@numba.njit
def _is_sound(page: Any, left: Any, is_first: Any, levels: Any) -> Any:
    """True if a page's header is complete, its bytes are in the chunk, and its definition levels are RLE-encoded.

    left: the number of bytes in the chunk after the header. is_first: whether the page may be a dictionary page.
    """
    kind, values, size, raw_size = page[KIND], page[VALUES], page[SIZE], page[RAW_SIZE]
    if kind != page[HEADER_KIND] or (kind == DICTIONARY and not is_first):
        return False
    if kind != DATA and kind != DATA_V2 and kind != DICTIONARY:
        return False
    if min(values, size, raw_size) < 0 or max(values, size, raw_size) > _MAX_SIZE or size > left:
        return False
    if kind == DATA_V2:
        level_bytes = page[LEVEL_BYTES]
        return 0 <= level_bytes <= min(size, raw_size) and levels == (level_bytes > 0)
    return kind == DICTIONARY or not levels or page[LEVEL_ENCODING] == RLE


@numba.njit
def _literal_size(data: Any, at: Any, end: Any, tag: Any) -> Any:
    """Return the size of a Snappy literal and the position of its bytes; size -1 if it is truncated.

    tag: its first byte. The upper six bits are the size minus 1 if that is below 60. The values 60 to 63 mean that the size
    minus 1 follows in one to four bytes.
    """
    size = int64(tag >> 2)
    if size >= 60:
        size_bytes = size - 59
        if size_bytes > end - at:
            return int64(-1), at
        size = int64(0)
        for i in range(size_bytes):
            size |= int64(data[at + i]) << (8 * i)
        at += size_bytes
    return size + 1, at


@numba.njit
def _single_literal(data: Any, at: Any, end: Any, raw_size: Any) -> Any:
    """Locate the raw bytes in a Snappy block that consists of a single literal; returns -1 for other blocks."""
    size, at = _varint(data, at, end)
    if size != raw_size or at >= end or data[at] & uint8(3):
        return int64(-1)
    literal, at = _literal_size(data, at + 1, end, int64(data[at]))
    return at if literal == raw_size and end - at == raw_size else int64(-1)


@numba.njit
def _find_literal(data: Any, page: Any) -> None:
    """Mark a page as not compressed if its Snappy block is one literal, which Snappy writes for incompressible bytes."""
    if page[KIND] == DATA_V2:
        return
    at = _single_literal(data, page[BODY], page[BODY] + page[SIZE], page[RAW_SIZE])
    if at >= 0:
        page[BODY], page[SIZE], page[COMPRESSED] = at, page[RAW_SIZE], 0


@numba.njit(int64(Bytes, int64, numba.boolean, int64, int64[:, ::1], int64[::1]), cache=True, nogil=True)
def page_table(data: Any, rows: Any, levels: Any, codec: Any, pages: Any, totals: Any) -> Any:
    """Write the page table of a chunk; returns the number of data pages.

    Row 0 is the dictionary page, with kind -1 if there is none; the other rows are the data pages. Returns -1 if the pages
    are not those of a flat column with ``rows`` rows, and ``TOO_MANY_PAGES`` if the table has too few rows.

    levels: whether the column has definition levels, which must then have one bit. codec: ``AS_STORED``, ``SNAPPY`` (pages
    of one literal are marked as not compressed), ``LZ4``, or ``OTHER_CODEC``. totals: receives the totals of the chunk.
    """
    at, end = int64(0), int64(len(data))
    count, total = 0, int64(0)
    pages[0, :] = _UNKNOWN
    totals[:] = 0
    while at < end:
        if count + 1 == len(pages):
            return int64(TOO_MANY_PAGES)
        # only the first page may be the dictionary; it is parsed into the next free row and then moved to row 0
        is_first = count == 0 and pages[0, KIND] == _UNKNOWN
        page = pages[count + 1]
        at = _page_header(data, at, end, page)
        if at > end or not _is_sound(page, end - at, is_first, levels):
            return int64(-1)
        page[BODY] = at
        at += page[SIZE]
        totals[RAW_BYTES] += page[RAW_SIZE]
        if codec == AS_STORED:
            page[COMPRESSED] = 0
        elif codec == SNAPPY:
            _find_literal(data, page)
        if page[COMPRESSED] == 0 and page[SIZE] != page[RAW_SIZE]:
            return int64(-1)
        if page[KIND] == DICTIONARY:
            pages[0, :] = page
            continue
        totals[COMPRESSED_PAGES] += page[COMPRESSED]
        totals[INDEX_PAGES] += page[ENCODING] == RLE_DICTIONARY or page[ENCODING] == PLAIN_DICTIONARY
        total += page[VALUES]
        count += 1
    pages[: count + 1, FIRST_ENTRY] = 0
    pages[: count + 1, ENTRIES] = pages[0, VALUES] if pages[0, KIND] == DICTIONARY else 0
    return int64(count) if total == rows else int64(-1)
