"""Pieces of a file on another filesystem, row groups or stripes, whose columns are fetched before they are decoded."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from kquery_spark.sources.base import DataFile
from kquery_spark.sources.input_file import shared_input
from kquery_spark.sources.prefetch.byte_ranges import ByteRange
from kquery_spark.sources.prefetch.fetched_ranges import FetchedRanges
from kquery_spark.sources.prefetch.fetching import Release

_MAX_BYTES_AHEAD = 64 << 20  # of a piece, beside what its reader has in memory


class FetchedPieces:
    """What is fetched of a file's pieces, of each for as long as somebody holds it. Any thread may call any method."""

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self._held: dict[int, tuple[FetchedRanges, int]] = {}  # with the number of those who hold it
        self._lock = threading.Lock()

    def hold(self, piece: int, parts: Sequence[ByteRange]) -> Release:
        """Fetch parts of a piece for all who read it, as many as may be fetched ahead; gives what lets go of them."""
        with self._lock:
            fetched, holders = self._held.get(piece) or (self._new(), 0)
            self._held[piece] = fetched, holders + 1
        try:
            fetched.fetch(_first(parts))
        except BaseException:
            self._release(piece)
            raise
        return partial(self._release, piece)

    def of(self, piece: int, parts: Sequence[ByteRange]) -> FetchedRanges:
        """Parts of a piece, asked for now if they are not on their way; kept only while somebody holds it."""
        with self._lock:
            held = self._held.get(piece)
        fetched = self._new() if held is None else held[0]
        fetched.fetch(parts)
        return fetched

    def _new(self) -> FetchedRanges:
        return FetchedRanges(shared_input(self._file))

    def _release(self, piece: int) -> None:
        with self._lock:
            fetched, holders = self._held.pop(piece)
            if holders > 1:
                self._held[piece] = fetched, holders - 1


def _first(parts: Sequence[ByteRange]) -> list[ByteRange]:
    """As many of the parts as may be fetched ahead."""
    totals = accumulate(part.size for part in parts)
    return [part for part, total in zip(parts, totals, strict=True) if total <= _MAX_BYTES_AHEAD]
