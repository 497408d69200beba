"""Applies deletion vectors and position deletes to a scan.

Two numberings of rows meet here. The file numbers all rows of a row group; the scan above numbers only the live rows. If
rows 1 and 4 of 6 are deleted, the scan sees rows 0 to 3, which are the file's rows 0, 2, 3, and 5:

    file row     0  1  2  3  4  5
    live flag    1  0  1  1  0  1
    live row     0     1  2     3

In a coalesced split, both numberings run through all of its row groups; docs/parquet-reader.md has an example.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import groupby, takewhile

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from kquery_spark.cached_property import cached_property
from kquery_spark.sources.base import ColumnRange, PageStatistics, Split
from kquery_spark.sources.deletes.deletion_vectors import DeletedPositions, DeletionVector
from kquery_spark.sources.deletes.position_deletes import PositionDeletes
from kquery_spark.sources.dictionary_column import DictionaryColumn
from kquery_spark.sources.lru_cache import LruCache
from kquery_spark.sources.prefetch.fetching import Release
from kquery_spark.sources.views.base import SourceView
from kquery_spark.types.batch import Batch, pick
from kquery_spark.types.vector import Int64s

_MAX_CACHED = 4  # splits whose live rows are cached, because every column of a split needs them
_MAX_FILES_AT_ONCE = 32

DeletedRows = DeletionVector | PositionDeletes | DeletedPositions

DELETION_VECTOR_CACHE: LruCache[DeletedRows, Int64s] = LruCache(64 << 20)
"""Positions of deleted rows by file. Cached, because the row groups of a file are planned and read one by one."""


def _positions(deleted: DeletedRows) -> Int64s:
    """Return the positions of a file's deleted rows in rising order."""
    positions = DELETION_VECTOR_CACHE.get(deleted)
    if positions is None:
        positions = deleted.positions()
        positions.flags.writeable = False
        DELETION_VECTOR_CACHE.put(deleted, positions)
    return positions


@dataclass(frozen=True)
class LiveRows(SourceView):
    """The live rows of a source whose splits have one piece each and exact row counts.

    deleted: the deleted rows of each file, or None. Row positions in ``read_rows`` and ``page_statistics`` count live rows.
    """

    deleted: tuple[DeletedRows | None, ...]

    @cached_property
    def _splits(self) -> list[Split]:
        """The splits with live row counts. Reads deletes concurrently, because they may be on a remote filesystem."""
        by_file = [list(splits) for _, splits in groupby(self.source.splits(), lambda split: split.file)]
        with ThreadPoolExecutor(_MAX_FILES_AT_ONCE) as pool:
            return [split for splits in pool.map(self._with_live_row_counts, by_file) for split in splits]

    @override
    def splits_of(self, file: int) -> list[Split]:
        return self._with_live_row_counts(self.source.splits_of(file))

    def _with_live_row_counts(self, splits: Sequence[Split]) -> list[Split]:
        return [replace(split, rows=split.rows - self._deleted_rows(split)) for split in splits]

    @override
    def splits(self) -> list[Split]:
        return self._splits

    def _deleted_rows(self, split: Split) -> int:
        """Count the deleted rows of a split of one piece."""
        vector = self.deleted[split.file]
        if vector is None:
            return 0
        ranges = self._row_ranges(split.file)
        start, rows = ranges[split.pieces[0]]
        is_whole_file = len(ranges) == 1
        if is_whole_file and vector.count is not None and vector.count <= rows:
            return vector.count
        low, high = np.searchsorted(_positions(vector), (start, start + rows))
        return int(high - low)

    def _live_rows(self, split: Split) -> _SplitRows | None:
        """Return the live rows of a split of one piece, or of a coalesced split; None if no row is deleted."""
        vector = self.deleted[split.file]
        if vector is None:
            return None
        ranges = self._row_ranges(split.file)
        return _split_rows(vector, tuple(ranges[piece] for piece in split.pieces))

    @override
    def coalesce(self, splits: Sequence[Split], columns: Sequence[str]) -> tuple[Split, int]:
        """Reads a split alone if most of its rows are deleted: all are decoded, but the caller's limits count live rows."""
        ranges = self._row_ranges(splits[0].file)
        together = list(takewhile(lambda split: 2 * split.rows >= ranges[split.pieces[0]][1], splits))
        if len(together) < 2:
            return splits[0], 1
        coalesced, count = super().coalesce(together, columns)
        return replace(coalesced, rows=sum(split.rows for split in together[:count])), count

    @override
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        live = self._live_rows(split)
        for batch in self.source.read(split, columns):
            yield batch if live is None else pick(batch, live.rows)

    @override
    def read_rows(self, split: Split, columns: Sequence[str], rows: Int64s) -> Batch:
        live = self._live_rows(split)
        return self.source.read_rows(split, columns, rows if live is None else live.rows[rows])

    @override
    def fetch(self, split: Split, columns: Sequence[str], rows: Int64s | None = None) -> Release:
        if rows is not None:
            live = self._live_rows(split)
            return super().fetch(split, columns, rows if live is None else live.rows[rows])
        release = super().fetch(split, columns)
        try:
            # Decodes the deletes while the columns are being fetched. Background threads fetch several splits, so this does
            # not compute the live rows, whose cache holds few splits.
            if (deleted := self.deleted[split.file]) is not None:
                _positions(deleted)
        except BaseException:
            release()
            raise
        return release

    @override
    def dictionary_column(
        self, split: Split, column: str, rows: Int64s | None = None
    ) -> DictionaryColumn | None:
        live = self._live_rows(split)
        if live is None:
            return super().dictionary_column(split, column, rows)
        dictionary_column = super().dictionary_column(
            split, column, None if rows is None else live.rows[rows]
        )
        if dictionary_column is None:
            return None
        parts = {field.name: getattr(dictionary_column, field.name) for field in fields(DictionaryColumn)}
        return _LiveDictionaryColumn(**parts, live=live)

    @override
    def page_statistics(self, split: Split, columns: Sequence[str]) -> PageStatistics | None:
        page_statistics = super().page_statistics(split, columns)
        live = None if page_statistics is None else self._live_rows(split)
        if page_statistics is None or live is None:
            return page_statistics
        ranges = {
            name: [None if each is None else each.for_row_subset() for each in known]
            for name, known in page_statistics.ranges.items()
        }
        return PageStatistics(live.before(page_statistics.starts), ranges)

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        known = super().ranges(split, column)
        return known if known is None or self.deleted[split.file] is None else known.for_row_subset()

    @override
    def row_count(self) -> int | None:
        return sum(split.rows for split in self._splits)


class _SplitRows:
    """The live rows of a split. flags: True for each live row. The rows of the pieces follow each other, in order."""

    def __init__(self, flags: npt.NDArray[np.bool_]) -> None:
        self._flags = flags

    @cached_property
    def rows(self) -> Int64s:
        """Positions of the live rows in the split."""
        return np.flatnonzero(self._flags)  # not read-only, as compiled kernels take no such arrays

    @cached_property
    def _counts(self) -> npt.NDArray[np.int32]:
        """Number of live rows up to and including each row."""
        return np.cumsum(self._flags, dtype=np.int32)

    def before(self, rows: Int64s) -> Int64s:
        """Count the live rows before each of the given rows; a row may be the end of the split."""
        return np.where(rows > 0, self._counts[np.maximum(rows, 1) - 1], 0).astype(np.int64)

    def numbers_of(self, rows: Int64s) -> Int64s:
        """Convert positions in the split to positions among the live rows; deleted rows are dropped."""
        live = rows[self._flags[rows]]
        return self._counts[live].astype(np.int64) - 1


@lru_cache(maxsize=_MAX_CACHED)
def _split_rows(deleted: DeletedRows, ranges: tuple[tuple[int, int], ...]) -> _SplitRows | None:
    """Return the live rows of a split; None if no row is deleted. ranges: (first row in the file, length) of each piece."""
    positions = _positions(deleted)
    flags = np.ones(sum(rows for _, rows in ranges), np.bool_)
    before = 0  # the rows of the ranges so far; there may be a gap in the file between two ranges
    for start, rows in ranges:
        low, high = np.searchsorted(positions, (start, start + rows))
        flags[positions[low:high] - start + before] = False
        before += rows
    return None if flags.all() else _SplitRows(flags)


@dataclass(frozen=True)
class _LiveDictionaryColumn(DictionaryColumn):
    """A dictionary column that shows only live rows and addresses them by their live position."""

    live: _SplitRows

    @override
    def rows_where(self, selected: npt.NDArray[np.bool_], rows: Int64s | None = None) -> Int64s:
        hits = super().rows_where(selected, None if rows is None else self.live.rows[rows])
        return self.live.numbers_of(hits)

    @override
    def take(self, rows: Int64s | None) -> pa.Array:
        return super().take(self.live.rows if rows is None else self.live.rows[rows])
