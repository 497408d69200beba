"""Prefetch: while a task decodes one split of a scan, background threads fetch the next splits from a remote filesystem."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import NamedTuple

from kquery_spark.physical.split_coalescer import SplitRead
from kquery_spark.sources.base import Source, Split
from kquery_spark.sources.prefetch.fetching import InBackground, Release, nothing_to_release
from kquery_spark.types.vector import Int64s

# Small splits are fetched several at a time, because the latency of their requests exceeds the transfer time.
_MAX_SPLITS_AHEAD, _MAX_BYTES_AHEAD = 8, 64 << 20
# Splits that are read together wait for each other's bytes, so most of those that are being fetched must be other splits.
_MAX_SPLITS_TOGETHER, _MAX_BYTES_TOGETHER = 4, 32 << 20


class PrefetchRequest(NamedTuple):
    """Columns of a split to fetch. rows: positions of the rows that may be read, in rising order; None for all rows."""

    columns: Sequence[str]
    rows: Int64s | None = None


def prefetched_reads(
    source: Source,
    splits: Sequence[Split],
    prefetch_request: Callable[[Split], PrefetchRequest | None],
    next_read: Callable[[Sequence[Split]], SplitRead],
) -> Generator[SplitRead, None, None]:
    """Yield the reads of remote splits in order and fetch the following splits in the background.

    The caller must finish a read before it asks for the next one, because its fetched bytes are released then.

    prefetch_request: returns the columns and rows that will probably be read from a split, or None if statistics exclude
    all of its rows. Background threads call it, because it may have to read a footer.
    next_read: returns the read of the first one or more of some splits, which are of one file and are being fetched.
    """
    ahead = _FetchQueue(source, splits, prefetch_request)
    try:
        while next_splits := ahead.advance():
            read = next_read(next_splits)
            ahead.take(len(read.singles) - 1)
            yield read
    finally:
        ahead.close()


class _FetchQueue:
    """The fetches that have been started, in the order of the splits, and those whose splits are being read."""

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
        self._being_read = ExitStack()  # releases the bytes of the splits that are being read
        self._taken = 0  # the number of splits that were read or are being read
        self._open_file: int | None = None  # the file of the last one of them

    def advance(self) -> list[Split]:
        """Release the splits that were read, wait until the next one has been requested, and start further fetches.

        Returns the next split, and those after it that may be read together with it; none at the end.
        """
        self._being_read.close()
        self._begin()
        if not self._started_fetches:
            return []
        split = self._started_fetches[0][0]
        self.take(1)
        together, nbytes = [split], split.nbytes
        for following, _ in islice(self._started_fetches, _MAX_SPLITS_TOGETHER - 1):
            nbytes += following.nbytes
            if following.file != split.file or nbytes > _MAX_BYTES_TOGETHER:
                break
            together.append(following)
        return together

    def take(self, count: int) -> None:
        """Wait until the next splits have been requested, too, so that they are read now, and start further fetches."""
        for _ in range(count):
            split, fetch = self._started_fetches[0]
            self._being_read.callback(fetch.result())
            self._started_fetches.popleft()
            self._taken += 1
            self._open_file = split.file
        self._begin()

    def close(self) -> None:
        """Release every split that is being read, and every fetch that was started."""
        self._being_read.close()
        for _, fetch in self._started_fetches:
            fetch.abandon(lambda release: release())

    def _begin(self) -> None:
        while self._left and self._may_begin(self._left[0]):
            split = self._left.popleft()
            self._started_fetches.append((split, InBackground(partial(self._fetch, split))))

    def _may_begin(self, split: Split) -> bool:
        if not self._started_fetches:
            return True
        most = _MAX_SPLITS_AHEAD
        if split.file == self._open_file:
            # Few at first: the first rows must arrive soon, and a query with a LIMIT should read little more than it needs.
            most = min(most, self._taken + 1)
        else:
            opening = (fetch for begun, fetch in self._started_fetches if begun.file == split.file)
            first = next(opening, None)
            if first is not None and not first.is_done:
                return False  # wait for the first split of this file, which opens it and reads the footer
        nbytes = split.nbytes + sum(begun.nbytes for begun, _ in self._started_fetches)
        return len(self._started_fetches) < most and nbytes <= _MAX_BYTES_AHEAD

    def _fetch(self, split: Split) -> Release:
        parts = self._prefetch_request(split)
        return nothing_to_release if parts is None else self._source.fetch(split, *parts)
