"""Files of which some rows are deleted, without these rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from kquery_spark.sources.base import ColumnRange, RowStretches, Split
from kquery_spark.sources.coded import CodedColumn
from kquery_spark.sources.deletes.deletion_vectors import DeletedPositions, DeletionVector
from kquery_spark.sources.deletes.position_deletes import PositionDeletes
from kquery_spark.sources.kept_values import KeptValues
from kquery_spark.sources.prefetch.fetching import Release
from kquery_spark.sources.views.base import SourceView
from kquery_spark.types.batch import Batch, pick
from kquery_spark.types.vector import Int64s

_MAX_CACHED = 4  # row groups whose rows are kept, as each column asks for them
_MAX_FILES_AT_ONCE = 32

DeletedRows = DeletionVector | PositionDeletes | DeletedPositions

KEPT_POSITIONS: KeptValues[DeletedRows, Int64s] = KeptValues(64 << 20)
"""The numbers of deleted rows that this process has read, as the row groups of a file are planned and read one by one."""


def _positions(deleted: DeletedRows) -> Int64s:
    """The numbers of a file's deleted rows in rising order."""
    kept = KEPT_POSITIONS.get(deleted)
    if kept is None:
        kept = deleted.positions()
        kept.flags.writeable = False
        KEPT_POSITIONS.put(deleted, kept)
    return kept


@dataclass(frozen=True)
class LiveRows(SourceView):
    """A source whose splits have one piece each and exact row counts, without the rows that are deleted in its files.

    deleted: for each file which of its rows are deleted, or None. Row numbers, in ``read_rows`` and ``stretches``, are
    those among the rows that are left.
    """

    deleted: tuple[DeletedRows | None, ...]

    @cached_property
    def _splits(self) -> list[Split]:
        """Looks at the deleted rows of several files at once, as each may be on another filesystem."""
        by_file = [list(splits) for _, splits in groupby(self.source.splits(), lambda split: split.file)]
        with ThreadPoolExecutor(_MAX_FILES_AT_ONCE) as pool:
            return [split for splits in pool.map(self._of_file, by_file) for split in splits]

    @override
    def splits_of(self, file: int) -> list[Split]:
        return self._of_file(self.source.splits_of(file))

    def _of_file(self, splits: Sequence[Split]) -> list[Split]:
        return [replace(split, rows=split.rows - self._deleted_rows(split)) for split in splits]

    @override
    def splits(self) -> list[Split]:
        return self._splits

    def _deleted_rows(self, split: Split) -> int:
        """How many rows of a split of one piece are deleted."""
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

    def _left(self, split: Split) -> _RowsLeft | None:
        """The rows of a split of one piece that are left; None where all are."""
        vector = self.deleted[split.file]
        if vector is None:
            return None
        return _rows_left(vector, *self._row_ranges(split.file)[split.pieces[0]])

    @override
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        for piece in split.pieces:
            one = replace(split, pieces=(piece,))
            left = self._left(one)
            for batch in self.source.read(one, columns):
                yield batch if left is None else pick(batch, left.rows)

    @override
    def read_rows(self, split: Split, columns: Sequence[str], rows: Int64s) -> Batch:
        left = self._left(split)
        return self.source.read_rows(split, columns, rows if left is None else left.rows[rows])

    @override
    def fetch(self, split: Split, columns: Sequence[str], rows: Int64s | None = None) -> Release:
        if rows is not None:
            left = self._left(split)
            return super().fetch(split, columns, rows if left is None else left.rows[rows])
        release = super().fetch(split, columns)
        try:
            self._left(split)  # while the columns are on their way
        except BaseException:
            release()
            raise
        return release

    @override
    def coded(self, split: Split, column: str, rows: Int64s | None = None) -> CodedColumn | None:
        left = self._left(split)
        if left is None:
            return super().coded(split, column, rows)
        coded = super().coded(split, column, None if rows is None else left.rows[rows])
        if coded is None:
            return None
        parts = {field.name: getattr(coded, field.name) for field in fields(CodedColumn)}
        return _LeftCodedColumn(**parts, left=left)

    @override
    def stretches(self, split: Split, columns: Sequence[str]) -> RowStretches | None:
        stretches = super().stretches(split, columns)
        left = None if stretches is None else self._left(split)
        if stretches is None or left is None:
            return stretches
        ranges = {
            name: [None if each is None else each.of_some_rows() for each in known]
            for name, known in stretches.ranges.items()
        }
        return RowStretches(left.before(stretches.starts), ranges)

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        known = super().ranges(split, column)
        return known if known is None or self.deleted[split.file] is None else known.of_some_rows()

    @override
    def row_count(self) -> int | None:
        return sum(split.rows for split in self._splits)


class _RowsLeft:
    """The rows of a piece of a file that are left. flags: one for each row of the piece."""

    def __init__(self, flags: npt.NDArray[np.bool_]) -> None:
        self._flags = flags

    @cached_property
    def rows(self) -> Int64s:
        """Their numbers in the piece."""
        return np.flatnonzero(self._flags)  # not read-only, as compiled kernels take no such arrays

    @cached_property
    def _counts(self) -> npt.NDArray[np.int32]:
        """How many are left up to each row and with it."""
        return np.cumsum(self._flags, dtype=np.int32)

    def before(self, rows: Int64s) -> Int64s:
        """How many are left before each of some rows, or before the end of the piece."""
        return np.where(rows > 0, self._counts[np.maximum(rows, 1) - 1], 0).astype(np.int64)

    def numbers_of(self, rows: Int64s) -> Int64s:
        """The numbers of some rows of the piece among those that are left, of those of them that are."""
        left = rows[self._flags[rows]]
        return self._counts[left].astype(np.int64) - 1


@lru_cache(maxsize=_MAX_CACHED)
def _rows_left(deleted: DeletedRows, start: int, rows: int) -> _RowsLeft | None:
    """The rows that are left of ``rows`` ones of a file from ``start``; None where all are."""
    positions = _positions(deleted)
    low, high = np.searchsorted(positions, (start, start + rows))
    if low == high:
        return None
    flags = np.ones(rows, np.bool_)
    flags[positions[low:high] - start] = False
    return _RowsLeft(flags)


@dataclass(frozen=True)
class _LeftCodedColumn(CodedColumn):
    """Codes of all rows, of which only those that are left are there; each is known by its number among these."""

    left: _RowsLeft

    @override
    def rows_where(self, selected: npt.NDArray[np.bool_], rows: Int64s | None = None) -> Int64s:
        hits = super().rows_where(selected, None if rows is None else self.left.rows[rows])
        return self.left.numbers_of(hits)

    @override
    def take(self, rows: Int64s | None) -> pa.Array:
        return super().take(self.left.rows if rows is None else self.left.rows[rows])
