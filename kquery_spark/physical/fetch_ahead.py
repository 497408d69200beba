"""While a task reads one split of a scan, the next ones are fetched from the other filesystem that they are on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import NamedTuple

from kquery_spark.sources.base import Source, Split
from kquery_spark.sources.prefetch.fetching import InBackground, Release, nothing_to_release
from kquery_spark.types.vector import Int64s

# more than the next split only of small ones, whose requests take longer than what they fetch
_MAX_SPLITS_AHEAD, _MAX_BYTES_AHEAD = 8, 64 << 20


class Wanted(NamedTuple):
    """Columns of a split to fetch. rows: the only ones that can be read; None for all."""

    columns: Sequence[str]
    rows: Int64s | None = None


def fetched_ahead(
    source: Source, splits: Sequence[Split], wanted: Callable[[Split], Wanted | None]
) -> Generator[Split, None, None]:
    """The splits, each of which the caller reads before it asks for the next one.

    wanted: what will probably be read of a split; None where statistics rule out all of its rows. Other threads call it, as
    it may have to look at a footer.
    """
    if not splits or not source.is_remote(splits[0]):
        yield from splits
        return
    ahead = _Ahead(source, splits, wanted)
    try:
        for split in splits:
            release = ahead.next()
            try:
                yield split
            finally:
                release()
    finally:
        ahead.close()


class _Ahead:
    """What is fetched of splits, in their order, before they are read."""

    def __init__(
        self, source: Source, splits: Sequence[Split], wanted: Callable[[Split], Wanted | None]
    ) -> None:
        self._source = source
        self._wanted = wanted
        self._left = deque(splits)
        self._begun: deque[tuple[Split, InBackground[Release]]] = deque()

    def next(self) -> Release:
        """What lets go of the next split, once its columns are asked for; those after it may be, too."""
        self._begin()
        release = self._begun[0][1].result()
        self._begun.popleft()
        self._begin()
        return release

    def close(self) -> None:
        """Let go of all that nobody read."""
        for _, fetch in self._begun:
            fetch.abandon(lambda release: release())

    def _begin(self) -> None:
        while self._left and self._may_begin(self._left[0]):
            split = self._left.popleft()
            self._begun.append((split, InBackground(partial(self._fetch, split))))

    def _may_begin(self, split: Split) -> bool:
        if not self._begun:
            return True
        last, fetch = self._begun[-1]
        if last.file == split.file and not fetch.is_done:
            return False  # the file is being opened
        nbytes = split.nbytes + sum(begun.nbytes for begun, _ in self._begun)
        return len(self._begun) < _MAX_SPLITS_AHEAD and nbytes <= _MAX_BYTES_AHEAD

    def _fetch(self, split: Split) -> Release:
        parts = self._wanted(split)
        return nothing_to_release if parts is None else self._source.fetch(split, *parts)
