"""How many splits are fetched ahead, and in which order files are opened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from kquery_spark.errors import SourceError
from kquery_spark.physical.prefetch import PrefetchRequest, prefetched_reads
from kquery_spark.physical.split_coalescer import SplitRead
from kquery_spark.sources.base import Source, Split


class Files(Source):
    """Splits of files that are open once ``opens`` is set. Records the splits that are fetched and released.

    groups: the number of splits per file. missing: the file and group of a split that cannot be fetched.
    """

    def __init__(
        self, nbytes: int, files: int = 10, groups: int = 2, missing: tuple[int, int] | None = None
    ) -> None:
        object.__setattr__(self, "nbytes", nbytes)
        object.__setattr__(self, "files", files)
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "missing", missing)
        object.__setattr__(self, "opens", threading.Event())
        object.__setattr__(self, "fetched", [])
        object.__setattr__(self, "released", [])

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([])

    def splits(self) -> list[Split]:
        files, groups = range(self.files), range(self.groups)
        return [Split(file, (group,), 1, self.nbytes) for file in files for group in groups]

    def read(self, split: Split, columns: Any) -> Any:
        raise NotImplementedError

    def is_remote(self, split: Split) -> bool:
        return True

    def fetch(self, split: Split, columns: Any, rows: Any = None) -> Any:
        self.fetched.append((split.file, *split.pieces))
        assert self.opens.wait(20)
        if (split.file, *split.pieces) == self.missing:
            raise SourceError(f"cannot read file {split.file}")
        return lambda: self.released.append((split.file, *split.pieces))


def until(condition: Callable[[], bool]) -> bool:
    """Whether it becomes true within 20 seconds."""
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def read_one_by_one(source: Files, splits: Sequence[Split]) -> Generator[Split, None, None]:
    """Read the splits one by one."""
    for (split,) in read_together(source, splits, 1):
        yield split


def read_together(
    source: Files, splits: Sequence[Split], most: int = 100
) -> Generator[Sequence[Split], None, None]:
    """Read up to ``most`` splits together."""

    def next_read(fetched: Sequence[Split]) -> SplitRead:
        return SplitRead(fetched[:most], fetched[0], None)

    with closing(prefetched_reads(source, splits, lambda split: PrefetchRequest([]), next_read)) as reads:
        for read in reads:
            yield read.singles


def test_of_small_splits_several_are_fetched_ahead():
    source = Files(1 << 20)
    splits = [split for split in source.splits() if split.pieces == (0,)]
    reading = read_one_by_one(source, splits)
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
    reading = read_one_by_one(source, splits)
    next(reading)
    assert until(lambda: len(source.fetched) == 1 + ahead)
    assert list(reading) == splits[1:]
    assert source.released == [(file, 0) for file in range(10)]


def test_a_file_is_opened_once_by_the_first_of_its_splits():
    source = Files(1 << 20)
    reading = read_one_by_one(source, source.splits())
    first = threading.Thread(target=lambda: next(reading))
    first.start()
    assert until(lambda: source.fetched == [(0, 0)])
    time.sleep(0.05)
    assert source.fetched == [(0, 0)]
    source.opens.set()
    first.join()
    assert list(reading) == source.splits()[1:]
    assert sorted(source.released) == [(file, group) for file in range(10) for group in range(2)]


def test_splits_that_are_read_together_are_in_one_file_and_few_at_first():
    source = Files(1 << 20, files=2, groups=12)
    source.opens.set()
    assert [len(splits) for splits in read_together(source, source.splits())] == [3, 4, 4, 1, 4, 4, 4]
    every = [(split.file, *split.pieces) for split in source.splits()]
    assert sorted(source.fetched) == sorted(source.released) == every


def test_most_of_the_splits_that_are_fetched_are_not_read_together():
    source = Files(1 << 20, files=1, groups=40)
    source.opens.set()
    taken = 0
    for splits in read_together(source, source.splits()):
        assert len(source.released) == taken
        taken += len(splits)
        begun = min(40, taken + min(8, taken + 1))
        assert until(lambda begun=begun: len(source.fetched) == begun)
    assert len(source.released) == 40


def test_large_splits_are_read_alone():
    source = Files(20 << 20, files=1, groups=6)
    source.opens.set()
    assert [len(splits) for splits in read_together(source, source.splits())] == [1] * 6


def test_splits_that_are_read_together_are_released_after_a_stop():
    source = Files(1 << 20, files=1, groups=12)
    source.opens.set()
    reading = read_together(source, source.splits())
    assert [len(next(reading)) for _ in range(2)] == [3, 4]
    assert until(lambda: len(source.fetched) == 12)
    assert sorted(source.released) == [(0, 0), (0, 1), (0, 2)]
    reading.close()
    assert until(lambda: sorted(source.released) == sorted(source.fetched))


@pytest.mark.parametrize("group", [0, 1, 5, 11])
def test_a_failed_fetch_is_raised_once_and_the_others_are_released(group: int) -> None:
    source = Files(1 << 20, files=1, groups=12, missing=(0, group))
    source.opens.set()
    reading = read_together(source, source.splits())
    with pytest.raises(SourceError, match="cannot read file 0"):
        list(reading)
    assert next(reading, None) is None
    assert until(lambda: {*source.fetched} - {*source.released} == {(0, group)})
