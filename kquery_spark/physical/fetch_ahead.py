"""While a task reads one split of a scan, the next one is fetched from the other filesystem that it is on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from kquery_spark.sources.base import Source, Split
from kquery_spark.sources.fetching import InBackground, Release
from kquery_spark.types.vector import Int64s


class Wanted(NamedTuple):
    """Columns of a split to fetch. rows: the only ones that can be read; None for all."""

    columns: Sequence[str]
    rows: Int64s | None = None


def fetched_ahead(
    source: Source, splits: Sequence[Split], wanted: Callable[[Split], Wanted | None]
) -> Generator[Split, None, None]:
    """The splits, each of which the caller reads before it asks for the next one.

    wanted: what will probably be read of a split; None where statistics rule out all of its rows. Another thread calls it,
    as it may have to look at a footer.
    """
    if not splits or not source.is_remote(splits[0]):
        yield from splits
        return
    following = iter(enumerate(splits))

    def fetch_next() -> _Fetched | None:
        for position, split in following:
            parts = wanted(split)
            if parts is not None:
                return _Fetched(position, source.fetch(split, *parts))
        return None

    ahead = InBackground(fetch_next)
    try:
        for position, split in enumerate(splits):
            fetched = ahead.result()
            if fetched is None or position < fetched.position:
                yield split
                continue
            ahead = InBackground(fetch_next)
            try:
                yield split
            finally:
                fetched.release()
    finally:
        ahead.abandon(_release)


class _Fetched(NamedTuple):
    """What was asked for of the split at a position."""

    position: int
    release: Release


def _release(fetched: _Fetched | None) -> None:
    if fetched is not None:
        fetched.release()
