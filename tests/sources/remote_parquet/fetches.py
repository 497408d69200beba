"""Helpers that check which bytes of a remote Parquet file are requested, and which fetched bytes are held in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any

import pyarrow.parquet as pq

from kquery_spark.physical.prefetch import PrefetchRequest, prefetched_reads
from kquery_spark.physical.split_coalescer import SplitRead
from kquery_spark.sources.base import Source, Split
from kquery_spark.sources.parquet.open_files import open_file
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.sources.prefetch.byte_ranges import ByteRange

ROWS, GROUP_ROWS = 400_000, 100_000


def chunk_of(path: str, group: int, column: int) -> ByteRange:
    chunk = pq.read_metadata(path).row_group(group).column(column)
    start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
    return ByteRange(start, chunk.total_compressed_size)


def are_requested(requests: list[ByteRange], *chunks: ByteRange) -> bool:
    """Return whether all these chunks are requested within 20 seconds."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if all(any(request.contains(chunk) for request in requests) for chunk in chunks):
            return True
        time.sleep(0.01)
    return False


def held(source: ParquetSource) -> dict[int, Any]:
    return open_file(source.files[0])._fetched._held


def read_one_by_one(
    source: Source, splits: Sequence[Split], prefetch_request: Callable[[Split], PrefetchRequest | None]
) -> Generator[Split, None, None]:
    """Read the splits one by one."""

    def next_read(fetched: Sequence[Split]) -> SplitRead:
        return SplitRead(fetched[:1], fetched[0], None)

    with closing(prefetched_reads(source, splits, prefetch_request, next_read)) as reads:
        for read in reads:
            yield read.split


def is_released(source: ParquetSource) -> bool:
    """Return whether all fetched bytes of a file are released within 20 seconds."""
    end = time.monotonic() + 20
    while held(source) and time.monotonic() < end:
        time.sleep(0.01)
    return not held(source)
