"""While a task reads one split of a scan, the next one is fetched from the other filesystem that it is on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence

from kquery_spark.sources.base import Source, Split
from kquery_spark.sources.fetching import Fetching


def fetched_ahead(
    source: Source, splits: Sequence[Split], wanted: Callable[[Split], Sequence[str] | None]
) -> Generator[Split, None, None]:
    """The splits, each of which the caller reads before it asks for the next one.

    wanted: the columns of a split that will probably be read; None where statistics rule out all of its rows.
    """
    each_begun = _each_begun(source, splits, wanted)
    ahead = next(each_begun, None)
    try:
        for position, split in enumerate(splits):
            if ahead is None or position < ahead[0]:
                yield split
                continue
            (_, fetching), ahead = ahead, None
            with fetching:
                ahead = next(each_begun, None)  # of the same file maybe, whose footer is here by now
                yield split
    finally:
        if ahead is not None:
            ahead[1].close()


def _each_begun(
    source: Source, splits: Sequence[Split], wanted: Callable[[Split], Sequence[str] | None]
) -> Iterator[tuple[int, Fetching]]:
    """Fetches of splits, by their positions, each of which begins when it is asked for; none of splits of this machine."""
    for position, split in enumerate(splits):
        columns = wanted(split)
        if columns is None:
            continue
        fetching = source.fetching(split, columns)
        if fetching is None:
            return
        yield position, fetching
