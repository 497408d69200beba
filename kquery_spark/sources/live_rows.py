"""Files of which some rows are deleted, without these rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from kquery_spark.sources.base import ColumnRange, RowStretches, Split
from kquery_spark.sources.coded import CodedColumn
from kquery_spark.sources.deletion_vectors import DeletedPositions, DeletionVector
from kquery_spark.sources.position_deletes import PositionDeletes
from kquery_spark.sources.view import SourceView
from kquery_spark.types.batch import Batch, pick
from kquery_spark.types.vector import Int64s

_MAX_CACHED = 4  # row groups whose rows are kept, as each column asks for them

DeletedRows = DeletionVector | PositionDeletes | DeletedPositions


@dataclass(frozen=True)
class LiveRows(SourceView):
    """A source whose splits have one piece each and exact row counts, without the rows that are deleted in its files.

    deleted: for each file which of its rows are deleted, or None. Row numbers, in ``read_rows`` and ``stretches``, are
    those among the rows that are left.
    """

    deleted: tuple[DeletedRows | None, ...]

    @cached_property
    def _splits(self) -> list[Split]:
        return [
            replace(split, rows=split.rows - self._deleted_rows(split)) if self.deleted[split.file] else split
            for split in self.source.splits()
        ]

    @override
    def splits(self) -> list[Split]:
        return self._splits

    def _deleted_rows(self, split: Split) -> int:
        """How many rows of a split of one piece are deleted."""
        vector = self.deleted[split.file]
        if vector is None:
            return 0
        start, rows = self._row_ranges[split.file, split.pieces[0]]
        is_whole_file = start == 0 and (split.file, split.pieces[0] + 1) not in self._row_ranges
        if is_whole_file and vector.count is not None and vector.count <= rows:
            return vector.count
        low, high = np.searchsorted(vector.positions(), (start, start + rows))
        return int(high - low)

    def _live(self, split: Split) -> Int64s | None:
        """The rows of a split of one piece that are left, by their numbers in the file's piece; None for all."""
        vector = self.deleted[split.file]
        if vector is None:
            return None
        return _live_rows(vector, *self._row_ranges[split.file, split.pieces[0]])

    @override
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        for piece in split.pieces:
            one = replace(split, pieces=(piece,))
            live = self._live(one)
            for batch in self.source.read(one, columns):
                yield batch if live is None else pick(batch, live)

    @override
    def read_rows(self, split: Split, columns: Sequence[str], rows: Int64s) -> Batch:
        live = self._live(split)
        return self.source.read_rows(split, columns, rows if live is None else live[rows])

    @override
    def coded(self, split: Split, column: str, rows: Int64s | None = None) -> CodedColumn | None:
        live = self._live(split)
        if live is None:
            return super().coded(split, column, rows)
        coded = super().coded(split, column, live if rows is None else live[rows])
        if coded is None:
            return None
        parts = {field.name: getattr(coded, field.name) for field in fields(CodedColumn)}
        return _LiveCodedColumn(**parts, live=live)

    @override
    def stretches(self, split: Split, columns: Sequence[str]) -> RowStretches | None:
        stretches, live = super().stretches(split, columns), self._live(split)
        if stretches is None or live is None:
            return stretches
        ranges = {
            name: [None if each is None else each.of_some_rows() for each in known]
            for name, known in stretches.ranges.items()
        }
        return RowStretches(np.searchsorted(live, stretches.starts), ranges)

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        known = super().ranges(split, column)
        return known if known is None or self.deleted[split.file] is None else known.of_some_rows()

    @override
    def row_count(self) -> int | None:
        return sum(split.rows for split in self._splits)


@lru_cache(maxsize=_MAX_CACHED)
def _live_rows(deleted: DeletedRows, start: int, rows: int) -> Int64s:
    """The rows that are left of ``rows`` ones of a file from ``start``, by their numbers among these."""
    positions = deleted.positions()
    low, high = np.searchsorted(positions, (start, start + rows))
    flags = np.ones(rows, np.bool_)
    flags[positions[low:high] - start] = False
    return np.flatnonzero(flags)  # not read-only, as compiled kernels take no such arrays


@dataclass(frozen=True)
class _LiveCodedColumn(CodedColumn):
    """Codes of all rows, of which those with the numbers ``live`` are there; each is known by its number among these."""

    live: Int64s

    @override
    def rows_where(self, selected: npt.NDArray[np.bool_], rows: Int64s | None = None) -> Int64s:
        hits = super().rows_where(selected, self.live if rows is None else self.live[rows])
        return self._numbers[hits]

    @override
    def take(self, rows: Int64s | None) -> pa.Array:
        return super().take(self.live if rows is None else self.live[rows])

    @cached_property
    def _numbers(self) -> Int64s:
        """The number among the live rows of each live one."""
        numbers = np.zeros(self.rows, np.int64)
        numbers[self.live] = np.arange(len(self.live))
        return numbers
