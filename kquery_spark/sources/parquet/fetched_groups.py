"""Row groups of a file on another filesystem, whose column chunks, or pages, are fetched before they are decoded."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from kquery_spark.sources.base import DataFile
from kquery_spark.sources.byte_ranges import ByteRange
from kquery_spark.sources.fetched_ranges import FetchedRanges
from kquery_spark.sources.fetching import Release
from kquery_spark.sources.input_file import shared_input

_MAX_BYTES_AHEAD = 64 << 20  # of a row group, beside what its reader has in memory


class FetchedGroups:
    """What is fetched of a file's row groups, of each for as long as somebody holds it. Any thread may call any method."""

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self._held: dict[int, tuple[FetchedRanges, int]] = {}  # with the number of those who hold it
        self._lock = threading.Lock()

    def hold(self, group: int, parts: Sequence[ByteRange]) -> Release:
        """Fetch parts of a row group for all who read it, as many as may be fetched ahead; gives what lets go of them."""
        with self._lock:
            fetched, holders = self._held.get(group) or (self._new(), 0)
            self._held[group] = fetched, holders + 1
        try:
            fetched.fetch(_first(parts))
        except BaseException:
            self._release(group)
            raise
        return partial(self._release, group)

    def of(self, group: int, parts: Sequence[ByteRange]) -> FetchedRanges:
        """Parts of a row group, asked for now if they are not on their way; kept only while somebody holds it."""
        with self._lock:
            held = self._held.get(group)
        fetched = self._new() if held is None else held[0]
        fetched.fetch(parts)
        return fetched

    def _new(self) -> FetchedRanges:
        return FetchedRanges(shared_input(self._file))

    def _release(self, group: int) -> None:
        with self._lock:
            fetched, holders = self._held.pop(group)
            if holders > 1:
                self._held[group] = fetched, holders - 1


def _first(parts: Sequence[ByteRange]) -> list[ByteRange]:
    """As many of the parts as may be fetched ahead."""
    totals = accumulate(part.size for part in parts)
    return [part for part, total in zip(parts, totals, strict=True) if total <= _MAX_BYTES_AHEAD]
