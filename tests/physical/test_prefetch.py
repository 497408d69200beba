"""How many splits are fetched ahead, and in which order files are opened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from kquery_spark.physical.prefetch import PrefetchRequest, prefetched_splits
from kquery_spark.sources.base import Source, Split


class Files(Source):
    """Splits of files that are open once ``opens`` is set, and what is done with them."""

    def __init__(self, nbytes: int) -> None:
        object.__setattr__(self, "nbytes", nbytes)
        object.__setattr__(self, "opens", threading.Event())
        object.__setattr__(self, "fetched", [])
        object.__setattr__(self, "released", [])

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([])

    def splits(self) -> list[Split]:
        return [Split(file, (group,), 1, self.nbytes) for file in range(10) for group in range(2)]

    def read(self, split: Split, columns: Any) -> Any:
        raise NotImplementedError

    def is_remote(self, split: Split) -> bool:
        return True

    def fetch(self, split: Split, columns: Any, rows: Any = None) -> Any:
        self.fetched.append((split.file, *split.pieces))
        assert self.opens.wait(20)
        return lambda: self.released.append((split.file, *split.pieces))


def until(condition: Callable[[], bool]) -> bool:
    """Whether it becomes true within 20 seconds."""
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_of_small_splits_several_are_fetched_ahead():
    source = Files(1 << 20)
    splits = [split for split in source.splits() if split.pieces == (0,)]
    reading = prefetched_splits(source, splits, lambda split: PrefetchRequest([]))
    first = threading.Thread(target=lambda: next(reading))
    first.start()
    assert until(lambda: len(source.fetched) == 8)
    source.opens.set()
    first.join()
    assert until(lambda: len(source.fetched) == 9)
    assert not source.released
    assert next(reading) == splits[1]
    assert source.released == [(0, 0)]
    reading.close()
    assert until(lambda: sorted(source.released) == sorted(source.fetched))


@pytest.mark.parametrize(("nbytes", "ahead"), [(40 << 20, 1), (20 << 20, 3)])
def test_of_large_splits_few_are_fetched_ahead(nbytes, ahead):
    source = Files(nbytes)
    source.opens.set()
    splits = [split for split in source.splits() if split.pieces == (0,)]
    reading = prefetched_splits(source, splits, lambda split: PrefetchRequest([]))
    next(reading)
    assert until(lambda: len(source.fetched) == 1 + ahead)
    assert list(reading) == splits[1:]
    assert source.released == [(file, 0) for file in range(10)]


def test_a_file_is_opened_once_by_the_first_of_its_splits():
    source = Files(1 << 20)
    reading = prefetched_splits(source, source.splits(), lambda split: PrefetchRequest([]))
    first = threading.Thread(target=lambda: next(reading))
    first.start()
    assert until(lambda: source.fetched == [(0, 0)])
    time.sleep(0.05)
    assert source.fetched == [(0, 0)]
    source.opens.set()
    first.join()
    assert list(reading) == source.splits()[1:]
    assert sorted(source.released) == [(file, group) for file in range(10) for group in range(2)]
