"""Files with a column of the positions of rows in them, as ``_metadata.row_index`` of Parquet files is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.sources.base import ColumnRange, DataFile, RowStretches, Split
from kquery_spark.sources.bucketing import Bucketing
from kquery_spark.sources.coded import CodedColumn
from kquery_spark.sources.view import SourceView
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Int64s


@dataclass(frozen=True)
class NumberedRows(SourceView):
    """A source of files, whose splits have one piece each and exact row counts, with a further column of row numbers."""

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
        """The files, whose folders' values decide which ones are read."""
        files: Sequence[DataFile] = getattr(self.source, "files", ())
        return files

    @property
    def partition_columns(self) -> Sequence[str]:
        """The columns whose values the folders of the files say."""
        columns: Sequence[str] = getattr(self.source, "partition_columns", ())
        return columns

    @cached_property
    def _starts(self) -> dict[tuple[int, int], int]:
        """The number of the first row of each piece of a file."""
        starts: dict[tuple[int, int], int] = {}
        for file, group in groupby(self.source.splits(), key=lambda split: split.file):
            splits = list(group)
            numbers = accumulate((split.rows for split in splits), initial=0)
            starts |= {(file, split.pieces[0]): start for split, start in zip(splits, numbers, strict=False)}
        return starts

    def _stored(self, columns: Sequence[str]) -> list[str]:
        return [column for column in columns if column != self.name]

    def _with_numbers(self, batch: Batch, columns: Sequence[str], numbers: Int64s) -> Batch:
        """The batch of the stored columns with the numbers of its rows where ``columns`` has them."""
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        arrays[self.name] = pa.array(numbers)
        schema = pa.schema([self.schema.field(column) for column in columns])
        return Batch(schema, tuple(arrays[column] for column in columns), batch.num_rows)

    @override
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        for piece in split.pieces:
            start = self._starts[split.file, piece]
            for batch in self.source.read(replace(split, pieces=(piece,)), self._stored(columns)):
                yield self._with_numbers(batch, columns, np.arange(start, start + batch.num_rows))
                start += batch.num_rows

    @override
    def read_rows(self, split: Split, columns: Sequence[str], rows: Int64s) -> Batch:
        batch = self.source.read_rows(split, self._stored(columns), rows)
        return self._with_numbers(batch, columns, self._starts[split.file, split.pieces[0]] + rows)

    @override
    def coded(self, split: Split, column: str, rows: Int64s | None = None) -> CodedColumn | None:
        return None if column == self.name else super().coded(split, column, rows)

    @override
    def stretches(self, split: Split, columns: Sequence[str]) -> RowStretches | None:
        stored = self._stored(columns)
        return super().stretches(split, stored) if stored else None

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        if column != self.name:
            return super().ranges(split, column)
        if len(split.pieces) != 1:
            return None
        start = self._starts[split.file, split.pieces[0]]
        return ColumnRange(start, start + max(split.rows, 1) - 1, 0)

    @override
    def column_bytes(self, columns: Sequence[str]) -> int:
        return super().column_bytes(self._stored(columns))

    @override
    def check_files(self, columns: Sequence[str]) -> None:
        super().check_files(self._stored(columns))
