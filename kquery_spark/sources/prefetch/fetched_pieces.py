"""Prefetches columns of a file's pieces, which are row groups or stripes, from another filesystem."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from kquery_spark.sources.base import DataFile
from kquery_spark.sources.input_file import shared_input
from kquery_spark.sources.prefetch.byte_ranges import ByteRange, read_array
from kquery_spark.sources.prefetch.fetched_ranges import FetchedRanges
from kquery_spark.sources.prefetch.fetching import Release

_MAX_BYTES_AHEAD = 64 << 20  # prefetched bytes of one piece


class FetchedPieces:
    """The fetched byte ranges of a file's pieces, each cached as long as a caller holds it. Thread-safe."""

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self._held: dict[
            int, tuple[FetchedRanges, int]
        ] = {}  # by piece: its ranges and the number of holders
        self._lock = threading.Lock()

    def hold(self, piece: int, parts: Sequence[ByteRange]) -> Release:
        """Start to fetch parts of a piece and hold them for all readers.

        At most the first _MAX_BYTES_AHEAD bytes are prefetched. Returns the function that ends the hold.
        """
        with self._lock:
            fetched, holders = self._held.get(piece) or (self._new(), 0)
            self._held[piece] = fetched, holders + 1
        try:
            fetched.fetch(_prefetched_parts(parts))
        except BaseException:
            self._release(piece)
            raise
        return partial(self._release, piece)

    def fetched(self, piece: int, parts: Sequence[ByteRange]) -> FetchedRanges:
        """Return parts of a piece, and request those that are not requested yet. They are cached only while held."""
        with self._lock:
            held = self._held.get(piece)
        fetched = self._new() if held is None else held[0]
        fetched.fetch(parts)
        return fetched

    def read_arrays(
        self, pieces: Sequence[int], ranges: Sequence[Sequence[ByteRange]]
    ) -> list[npt.NDArray[np.uint8]]:
        """Return an array for each sequence of ranges, like ``InputFile.read_arrays``.

        Each sequence has one range per piece, in the order of ``pieces``. All ranges are requested before this thread waits
        for the first one.
        """
        parts_by_piece = zip(*ranges, strict=True)
        fetched = [self.fetched(piece, parts) for piece, parts in zip(pieces, parts_by_piece, strict=True)]
        return [read_array(fetched, parts) for parts in ranges]

    def _new(self) -> FetchedRanges:
        return FetchedRanges(shared_input(self._file))

    def _release(self, piece: int) -> None:
        with self._lock:
            fetched, holders = self._held.pop(piece)
            if holders > 1:
                self._held[piece] = fetched, holders - 1


def _prefetched_parts(parts: Sequence[ByteRange]) -> list[ByteRange]:
    """Return the first parts with at most _MAX_BYTES_AHEAD bytes together."""
    totals = accumulate(part.size for part in parts)
    return [part for part, total in zip(parts, totals, strict=True) if total <= _MAX_BYTES_AHEAD]
