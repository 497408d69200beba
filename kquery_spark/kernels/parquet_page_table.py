"""The columns of the page table that ``loops/parquet_pages.py`` writes, and the numbers of Parquet's enums in it.

A table may hold the pages of a column in several row groups. Each row group has its own dictionary. The dictionaries are
concatenated, and ``FIRST_ENTRY`` is the position at which the dictionary of a page begins: with dictionaries of 3 and 4
values, index 2 of a page of the second row group is value 5.

The loops and their callers share these constants. So this module does not import numba, which may not be installed. The
enums are those of parquet.thrift of apache/parquet-format.
"""

from __future__ import annotations

from typing import Final

KIND: Final = 0
"""The page's type: ``DATA``, ``DICTIONARY`` or ``DATA_V2``; -1 in the row of the dictionary page if there is none."""
VALUES: Final = 1
"""The number of values, including NULLs."""
BODY: Final = 2
"""The position of the page's bytes behind its header, in the chunk."""
SIZE: Final = 3
"""The number of these bytes as stored."""
RAW_SIZE: Final = 4
"""The number of these bytes after decompression."""
ENCODING: Final = 5
"""The encoding of the values."""
LEVEL_ENCODING: Final = 6
"""The encoding of the definition levels."""
LEVEL_BYTES: Final = 7
"""The size of the definition levels in a page of version 2, and 0 in other pages."""
COMPRESSED: Final = 8
"""Whether the values are compressed."""
HEADER_KIND: Final = 9
"""The page type of the inner header, which must be equal to ``KIND``."""
FIRST_ENTRY: Final = 10
"""The position of index 0 of the page in the concatenated dictionaries; 0 for the pages of the first row group."""
ENTRIES: Final = 11
"""The number of values in the dictionary of the page's row group; 0 without a dictionary."""
PAGE_FIELDS: Final = 12
"""The number of columns."""

RAW_BYTES: Final = 0
"""Index in the totals of a chunk: the decompressed bytes of all pages."""
COMPRESSED_PAGES: Final = 1
"""Index in the totals of a chunk: the number of compressed data pages."""
INDEX_PAGES: Final = 2
"""Index in the totals of a chunk: the number of data pages that store dictionary indices."""
TOTALS: Final = 3
"""The number of totals."""

TOO_MANY_PAGES: Final = -2
"""The result of ``page_table`` if the table has too few rows."""
AS_STORED: Final = 0
"""Codec argument of ``page_table``: the chunk is not compressed."""
SNAPPY: Final = 1
"""Codec argument of ``page_table``: pages may consist of one literal, which is used without decompression."""
LZ4: Final = 2
"""Codec argument of ``page_table`` and ``decompress_pages``: pages are LZ4 blocks, the codec LZ4_RAW of Parquet."""
OTHER_CODEC: Final = 3
"""Codec argument of ``page_table``: every page has to be decompressed."""

DATA: Final = 0
"""``PageType.DATA_PAGE``."""
DICTIONARY: Final = 2
"""``PageType.DICTIONARY_PAGE``."""
DATA_V2: Final = 3
"""``PageType.DATA_PAGE_V2``."""
PLAIN: Final = 0
"""``Encoding.PLAIN``."""
PLAIN_DICTIONARY: Final = 2
"""``Encoding.PLAIN_DICTIONARY``: dictionary indices, or a plain-encoded dictionary page."""
RLE: Final = 3
"""``Encoding.RLE``."""
DELTA_BINARY_PACKED: Final = 5
"""``Encoding.DELTA_BINARY_PACKED``: differences between integers."""
DELTA_LENGTH_BYTE_ARRAY: Final = 6
"""``Encoding.DELTA_LENGTH_BYTE_ARRAY``: the lengths of all strings, then their bytes."""
DELTA_BYTE_ARRAY: Final = 7
"""``Encoding.DELTA_BYTE_ARRAY``: strings without the bytes that they share with the string before."""
RLE_DICTIONARY: Final = 8
"""``Encoding.RLE_DICTIONARY``: dictionary indices."""
BYTE_STREAM_SPLIT: Final = 9
"""``Encoding.BYTE_STREAM_SPLIT``: the first bytes of all values, then their second bytes, and so on."""

CONVERSION_SLACK: Final = 8
"""The number of bytes that ``convert_pages`` and ``unpack_deltas`` may write after the last value."""
MAX_CONVERTED_BYTES: Final = 1 << 30
"""The largest size of a chunk's pages after their conversion to plain ones; pyarrow reads chunks that would need more."""

ENCODINGS: Final = {
    "PLAIN": PLAIN,
    "PLAIN_DICTIONARY": PLAIN_DICTIONARY,
    "RLE": RLE,
    "DELTA_BINARY_PACKED": DELTA_BINARY_PACKED,
    "DELTA_LENGTH_BYTE_ARRAY": DELTA_LENGTH_BYTE_ARRAY,
    "DELTA_BYTE_ARRAY": DELTA_BYTE_ARRAY,
    "RLE_DICTIONARY": RLE_DICTIONARY,
    "BYTE_STREAM_SPLIT": BYTE_STREAM_SPLIT,
}
"""The encodings of values by name."""

SIZE_BYTES: Final = 4
"""The number of bytes of a size, which precedes a string, and in some pages the levels or the runs of Boolean values."""

AS_IN_ARROW: Final = 0
"""Layout of plain values: they are copied. Arrow stores them in the same way, or has 8 or 16 bits where the file has 32."""
INT96: Final = 1
"""Layout of plain values: times of 12 bytes, which are nanoseconds of the day and a Julian day number."""
INT96_BYTES: Final = 12
JULIAN_DAY_OF_EPOCH: Final = 2_440_588
"""The Julian day number of 1970-01-01."""
BIG_ENDIAN: Final = 2
"""Layout of plain values: signed integers of 1 to 16 bytes, the most significant byte first."""
BITS: Final = 3
"""Layout of plain values: bits, which become bytes of 0 or 1."""
SIZED_BIG_ENDIAN: Final = 4
"""Layout of plain values: as ``BIG_ENDIAN``, but each integer has its own size, which precedes it in 4 bytes."""
