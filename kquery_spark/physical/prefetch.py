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

# Small splits are fetched several at a time, because the latency of their requests exceeds the transfer time. All bytes
# here are ``Split.nbytes``: uncompressed and of all columns, so a scan of few columns fetches much less.
_MAX_SPLITS_AHEAD, _MAX_BYTES_AHEAD = 8, 64 << 20
# A read waits for the bytes of all of its splits. So it takes only a few of the splits that are being fetched: while it
# decodes them, the bytes of the others arrive.
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
    next_read: decides how many splits to read together. Its argument is the list of the next splits of one file whose
    fetches have started. It returns a read of the first one, or of the first several of them.
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
    """The splits whose fetches have been started, in their order, and the splits of the current read.

    ``advance`` begins a read with the next split, and ``take`` adds the splits after it. The next ``advance`` releases the
    bytes of all of them. Both start further fetches, so that the queue stays full while the caller decodes.
    """

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
        self._releases = ExitStack()  # the functions that release the splits of the current read
        self._splits_taken = 0  # the number of splits of the current read and of all reads before it
        self._open_file: int | None = None  # the file of the current read, whose footer is known

    def advance(self) -> list[Split]:
        """Release the last read, begin one with the next split once it has been requested, and start further fetches.

        Returns the next split, followed by the splits that may be read together with it. The list is empty at the end.
        """
        self._releases.close()
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
        """Add the next ``count`` splits to the current read once they have been requested, and start further fetches."""
        for _ in range(count):
            split, fetch = self._started_fetches[0]
            self._releases.callback(fetch.result())
            self._started_fetches.popleft()
            self._splits_taken += 1
            self._open_file = split.file
        self._begin()

    def close(self) -> None:
        """Release the current read, and every fetch that was started."""
        self._releases.close()
        for _, fetch in self._started_fetches:
            fetch.abandon(lambda release: release())

    def _begin(self) -> None:
        while self._left and self._may_begin(self._left[0]):
            split = self._left.popleft()
            self._started_fetches.append((split, InBackground(partial(self._fetch, split))))

    def _may_begin(self, split: Split) -> bool:
        if not self._started_fetches:
            return True
        max_ahead = _MAX_SPLITS_AHEAD
        if split.file == self._open_file:
            # Start few fetches at first: the first rows must arrive soon, and a query with a LIMIT should read little more
            # than it needs. This does not limit other files, because opening a file and reading its footer takes longest.
            max_ahead = min(max_ahead, self._splits_taken + 1)
        else:
            opening = (fetch for begun, fetch in self._started_fetches if begun.file == split.file)
            first = next(opening, None)
            if first is not None and not first.is_done:
                return False  # wait for the first split of this file, which opens it and reads the footer
        nbytes = split.nbytes + sum(begun.nbytes for begun, _ in self._started_fetches)
        return len(self._started_fetches) < max_ahead and nbytes <= _MAX_BYTES_AHEAD

    def _fetch(self, split: Split) -> Release:
        parts = self._prefetch_request(split)
        return nothing_to_release if parts is None else self._source.fetch(split, *parts)
