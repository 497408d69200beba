"""Decompresses the pages of a Parquet column chunk, which are Snappy or LZ4 blocks, into one array.

Positions within blocks are unsigned, because numba adds a test for negative ones to each access by a signed position.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import int64, uintp

from kquery_spark.kernels.loops.block_copies import PADDING
from kquery_spark.kernels.loops.lz4 import lz4_block
from kquery_spark.kernels.loops.memory import copy_bytes
from kquery_spark.kernels.loops.parquet_page_parts import skip_page
from kquery_spark.kernels.loops.parquet_pages import Bytes
from kquery_spark.kernels.loops.snappy import snappy_block
from kquery_spark.kernels.parquet_page_table import BODY, COMPRESSED, LEVEL_BYTES, RAW_SIZE, SIZE, SNAPPY


@numba.njit(
    numba.boolean(int64, Bytes, int64[:, ::1], numba.boolean[::1], numba.uint8[::1]), cache=True, nogil=True
)
def decompress_pages(codec: Any, data: Any, pages: Any, is_needed: Any, out: Any) -> Any:
    """Decompress the needed pages one after the other, and make the page table point to their raw bytes in ``out``.

    codec: ``SNAPPY`` or ``LZ4``. data, pages: the bytes of a chunk and the table of its pages. is_needed: a flag for each
    page; the other pages get the size 0 in the table. out: must have ``PADDING`` bytes more than the raw sizes of the needed
    pages.

    Returns False if a needed page is damaged or does not fit into ``out``.

    If only the second of three pages of 100 raw bytes is needed, the positions and sizes become (0, 0), (0, 100), (100, 0).
    """
    to = int64(0)
    for number in range(len(pages)):
        page = pages[number]
        if not is_needed[number]:
            skip_page(page, to)
            continue
        at, size, raw_size, levels = page[BODY], page[SIZE], page[RAW_SIZE], page[LEVEL_BYTES]
        if min(at, size, raw_size, levels) < 0 or levels > min(size, raw_size) or at + size > len(data):
            return False
        if to + raw_size + PADDING > len(out):
            return False
        # in pages of version 2 the levels come first and are never compressed
        stored = levels if page[COMPRESSED] else size
        if stored > raw_size:
            return False
        copy_bytes(out, to, data, at, stored)
        if stored < raw_size:
            block, block_end, block_to = uintp(at + stored), uintp(at + size), uintp(to + stored)
            block_size = uintp(raw_size - stored)
            if codec == SNAPPY:
                is_sound = snappy_block(data, block, block_end, out, block_to, block_size)
            else:
                is_sound = lz4_block(data, block, block_end, out, block_to, block_size)
            if not is_sound:
                return False
        page[BODY], page[SIZE] = to, raw_size
        to += raw_size
    return True
