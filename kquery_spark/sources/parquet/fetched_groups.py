"""Row groups of a file on another filesystem, whose column chunks are fetched before they are decoded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate

from kquery_spark.sources.base import DataFile
from kquery_spark.sources.byte_ranges import ByteRange
from kquery_spark.sources.fetched_ranges import FetchedRanges
from kquery_spark.sources.input_file import shared_input
from kquery_spark.sources.parquet.stored_chunks import StoredChunks

_MAX_BYTES_AHEAD = 64 << 20  # of a row group, beside what its reader has in memory


class FetchedGroups:
    """What is fetched of a file's row groups, of each for as long as somebody holds it. Any thread may call any method."""

    def __init__(self, file: DataFile, chunks: StoredChunks) -> None:
        self._file = file
        self._chunks = chunks
        self._held: dict[int, tuple[FetchedRanges, int]] = {}  # with the number of those who hold it
        self._lock = threading.Lock()

    def hold(self, group: int, columns: Sequence[str]) -> Callable[[], None]:
        """Fetch columns of a row group for all who read it, as many as may be fetched ahead; gives what lets go of them."""
        with self._lock:
            fetched, holders = self._held.get(group) or (self._new(), 0)
            self._held[group] = fetched, holders + 1
        try:
            fetched.fetch(_first(self._chunks.of(group, columns)))
        except BaseException:
            self._release(group)
            raise
        return partial(self._release, group)

    def of(self, group: int, columns: Sequence[str]) -> FetchedRanges:
        """Columns of a row group, asked for now if they are not on their way; kept only while somebody holds it."""
        with self._lock:
            held = self._held.get(group)
        fetched = self._new() if held is None else held[0]
        fetched.fetch(self._chunks.of(group, columns))
        return fetched

    def _new(self) -> FetchedRanges:
        return FetchedRanges(shared_input(self._file))

    def _release(self, group: int) -> None:
        with self._lock:
            fetched, holders = self._held.pop(group)
            if holders > 1:
                self._held[group] = fetched, holders - 1


def _first(chunks: Sequence[ByteRange]) -> list[ByteRange]:
    """As many of the chunks as may be fetched ahead."""
    totals = accumulate(chunk.size for chunk in chunks)
    return [chunk for chunk, total in zip(chunks, totals, strict=True) if total <= _MAX_BYTES_AHEAD]
