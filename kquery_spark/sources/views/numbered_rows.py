"""Adds a column of row positions, for ``_metadata.row_index`` of Parquet files and ``_pos`` of Iceberg tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.sources.base import ColumnRange, DataFile, PageStatistics, Split
from kquery_spark.sources.bucketing import Bucketing
from kquery_spark.sources.dictionary_column import DictionaryColumn
from kquery_spark.sources.prefetch.fetching import Release
from kquery_spark.sources.views.base import SourceView
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Int64s


@dataclass(frozen=True)
class NumberedRows(SourceView):
    """A source of files with an additional column ``name``, the position of each row in its file, from 0.

    The source's splits must have one piece each and exact row counts.
    """

    name: str

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.source.schema.append(pa.field(self.name, t.LONG, nullable=False))

    @property
    @override
    def bucketing(self) -> Bucketing | None:
        return self.source.bucketing

    @property
    def files(self) -> Sequence[DataFile]:
        """The source's files, whose partition values are used for pruning."""
        files: Sequence[DataFile] = getattr(self.source, "files", ())
        return files

    @property
    def partition_columns(self) -> Sequence[str]:
        """The partition columns, whose values come from directory names."""
        columns: Sequence[str] = getattr(self.source, "partition_columns", ())
        return columns

    def _stored(self, columns: Sequence[str]) -> list[str]:
        return [column for column in columns if column != self.name]

    def _with_positions(
        self, batch: Batch, columns: Sequence[str], split: Split, rows: Int64s | None = None
    ) -> Batch:
        """Select ``columns`` from a batch of stored columns, and add the row positions if they are among them.

        rows: the rows of the split that the batch has; None for all.
        """
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        if self.name in columns:
            arrays[self.name] = pa.array(self._row_positions(split, rows))
        schema = pa.schema([self.schema.field(column) for column in columns])
        return Batch(schema, tuple(arrays[column] for column in columns), batch.num_rows)

    def _row_positions(self, split: Split, rows: Int64s | None) -> Int64s:
        """Return the positions in the file of these rows of a split; ``None`` means all rows."""
        ranges = self._row_ranges(split.file)
        starts, counts = np.array([ranges[piece] for piece in split.pieces], np.int64).T
        ends = np.cumsum(counts)
        if rows is None:
            rows = np.arange(ends[-1])
        # For each piece: the position of its first row in the file, minus its position in the split.
        shifts = starts - (ends - counts)
        shift = shifts[0] if len(shifts) == 1 else shifts[np.searchsorted(ends, rows, side="right")]
        positions: Int64s = rows + shift
        return positions

    @override
    def coalesce(self, splits: Sequence[Split], columns: Sequence[str]) -> tuple[Split, int]:
        return super().coalesce(splits, self._stored(columns))

    @override
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        for batch in self.source.read(split, self._stored(columns)):
            yield self._with_positions(batch, columns, split)

    @override
    def read_rows(self, split: Split, columns: Sequence[str], rows: Int64s) -> Batch:
        batch = self.source.read_rows(split, self._stored(columns), rows)
        return self._with_positions(batch, columns, split, rows)

    @override
    def fetch(self, split: Split, columns: Sequence[str], rows: Int64s | None = None) -> Release:
        return super().fetch(split, self._stored(columns), rows)

    @override
    def dictionary_column(
        self, split: Split, column: str, rows: Int64s | None = None
    ) -> DictionaryColumn | None:
        return None if column == self.name else super().dictionary_column(split, column, rows)

    @override
    def page_statistics(self, split: Split, columns: Sequence[str]) -> PageStatistics | None:
        stored = self._stored(columns)
        return super().page_statistics(split, stored) if stored else None

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        if column != self.name:
            return super().ranges(split, column)
        if len(split.pieces) != 1:
            return None
        start, rows = self._row_ranges(split.file)[split.pieces[0]]
        return ColumnRange(start, start + max(rows, 1) - 1, 0)

    @override
    def column_bytes(self, columns: Sequence[str]) -> int:
        return super().column_bytes(self._stored(columns))

    @override
    def check_files(self, columns: Sequence[str]) -> None:
        super().check_files(self._stored(columns))
