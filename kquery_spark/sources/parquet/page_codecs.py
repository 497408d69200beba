"""Decompresses the pages of a column chunk: Snappy and LZ4 by compiled loops, ZSTD and GZIP by pyarrow's codecs."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.kernels.parquet_page_table import (
    AS_STORED,
    BODY,
    COMPRESSED,
    LEVEL_BYTES,
    LZ4,
    OTHER_CODEC,
    RAW_SIZE,
    SIZE,
    SNAPPY,
)
from kquery_spark.types.vector import Flags, Int64s

Bytes = npt.NDArray[np.uint8]

# In Snappy, the longest copy, 64 bytes, is stored in three bytes. In LZ4, a byte adds at most 255 bytes to a copy.
_MAX_RATIOS = {"SNAPPY": 22, "LZ4": 255}
LOOP_CODECS = {
    "UNCOMPRESSED": AS_STORED,
    "SNAPPY": SNAPPY,
    "LZ4": LZ4,
    "ZSTD": OTHER_CODEC,
    "GZIP": OTHER_CODEC,
}
"""The codec argument of ``page_table`` for pyarrow's names. LZ4 is LZ4_RAW; the name of the older codec is UNKNOWN."""
CODECS_DECOMPRESSED_BY_LOOPS = ("UNCOMPRESSED", *_MAX_RATIOS)
CODECS_AS_FAST_AS_PYARROW = ("UNCOMPRESSED", "SNAPPY")
"""Codecs that the loops decode as fast as pyarrow. LZ4_RAW takes a tenth longer; ZSTD and GZIP take a call per page."""

_NO_BYTES = np.empty(0, np.uint8)


def decompress_chunk_pages(
    codec: str, kernels: ModuleType, data: Bytes, pages: Int64s, is_needed: Flags
) -> tuple[Bytes, Int64s] | None:
    """Decompress the needed pages into one array; returns it with a page table that points into it. None for damaged pages.

    data, pages: the bytes of the chunk as stored, and the table of its pages. is_needed: a flag for each page. Skipped pages
    get size 0 in the table. If the second of three pages of 100 raw bytes each is needed, the array has 100 bytes, and the
    (position, size) pairs in the table are (0, 0), (0, 100), and (100, 0).
    """
    table = pages.copy()
    if codec in _MAX_RATIOS:
        raw_bytes = int(pages[is_needed, RAW_SIZE].sum())
        if raw_bytes > _MAX_RATIOS[codec] * len(data):
            return None
        out = np.empty(raw_bytes + kernels.PADDING, np.uint8)
        is_sound = kernels.decompress_pages(LOOP_CODECS[codec], data, table, is_needed, out)
        return (out, table) if is_sound else None
    parts: list[Bytes] = []
    total = 0
    for page, needed in zip(table, is_needed, strict=True):
        at, size, raw_size, levels = (int(page[i]) for i in (BODY, SIZE, RAW_SIZE, LEVEL_BYTES))
        page[BODY] = total
        if not needed:
            page[SIZE] = page[LEVEL_BYTES] = 0
            continue
        # in pages of version 2 the levels come first and are never compressed
        values = data[at + levels : at + size]
        if page[COMPRESSED]:
            decompressed = decompress(codec, values, raw_size - levels)
            if decompressed is None:
                return None
            values = decompressed
        parts += [data[at : at + levels], values] if levels else [values]
        page[SIZE] = raw_size
        total += raw_size
    return (np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else _NO_BYTES), table


def decompress(codec: str, data: Bytes, raw_size: int) -> Bytes | None:
    """Decompress a page; None if it is damaged or has another size than its header says."""
    if raw_size == 0:
        return _NO_BYTES
    stored = pa.py_buffer(data)
    try:
        if not _declares_size(codec, stored, raw_size):
            return None
        return np.frombuffer(_codec(codec).decompress(stored, raw_size), np.uint8)
    except (pa.ArrowException, OSError, ValueError):
        return None


def _declares_size(codec: str, data: pa.Buffer, raw_size: int) -> bool:
    """True if the compressed bytes themselves declare this size; pyarrow would pad a shorter result with zeros.

    A GZIP member ends with its size in four bytes.
    """
    if codec == "GZIP":
        return int.from_bytes(data.slice(max(data.size - 4, 0)).to_pybytes(), "little") == raw_size
    return True  # pyarrow checks the size of ZSTD frames itself


@cache
def _codec(name: str) -> Any:
    return pa.Codec(name.lower())
