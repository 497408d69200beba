"""Prefetch: while a task decodes one split of a scan, background threads fetch the next splits from a remote filesystem."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import NamedTuple

from kquery_spark.sources.base import Source, Split
from kquery_spark.sources.prefetch.fetching import InBackground, Release, nothing_to_release
from kquery_spark.types.vector import Int64s

# Small splits are fetched several at a time, because the latency of their requests exceeds the transfer time.
_MAX_SPLITS_AHEAD, _MAX_BYTES_AHEAD = 8, 64 << 20


class PrefetchRequest(NamedTuple):
    """Columns of a split to fetch. rows: positions of the rows that may be read, in rising order; None for all rows."""

    columns: Sequence[str]
    rows: Int64s | None = None


def prefetched_splits(
    source: Source, splits: Sequence[Split], prefetch_request: Callable[[Split], PrefetchRequest | None]
) -> Generator[Split, None, None]:
    """Yield the splits in order and fetch the following ones in the background.

    The caller must read a split before it asks for the next one, because its fetched bytes are released then.

    prefetch_request: returns the columns and rows that will probably be read from a split, or None if statistics exclude
    all of its rows. Background threads call it, because it may have to read a footer.
    """
    if not splits or not source.is_remote(splits[0]):
        yield from splits
        return
    ahead = _FetchQueue(source, splits, prefetch_request)
    try:
        for split in splits:
            release = ahead.next()
            try:
                yield split
            finally:
                release()
    finally:
        ahead.close()


class _FetchQueue:
    """The fetches that have been started and not yet consumed, in the order of the splits."""

    def __init__(
        self,
        source: Source,
        splits: Sequence[Split],
        prefetch_request: Callable[[Split], PrefetchRequest | None],
    ) -> None:
        self._source = source
        self._prefetch_request = prefetch_request
        self._left = deque(splits)
        self._started_fetches: deque[tuple[Split, InBackground[Release]]] = deque()

    def next(self) -> Release:
        """Wait until the next split has been requested, start further fetches, and return the function that releases it."""
        self._begin()
        release = self._started_fetches[0][1].result()
        self._started_fetches.popleft()
        self._begin()
        return release

    def close(self) -> None:
        """Release every fetch that was started and not read."""
        for _, fetch in self._started_fetches:
            fetch.abandon(lambda release: release())

    def _begin(self) -> None:
        while self._left and self._may_begin(self._left[0]):
            split = self._left.popleft()
            self._started_fetches.append((split, InBackground(partial(self._fetch, split))))

    def _may_begin(self, split: Split) -> bool:
        if not self._started_fetches:
            return True
        last, fetch = self._started_fetches[-1]
        if last.file == split.file and not fetch.is_done:
            return False  # wait for the first split of this file, which opens it and reads the footer
        nbytes = split.nbytes + sum(begun.nbytes for begun, _ in self._started_fetches)
        return len(self._started_fetches) < _MAX_SPLITS_AHEAD and nbytes <= _MAX_BYTES_AHEAD

    def _fetch(self, split: Split) -> Release:
        parts = self._prefetch_request(split)
        return nothing_to_release if parts is None else self._source.fetch(split, *parts)
