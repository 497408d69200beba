"""Base class of views: sources that delegate to another source, except for the methods that a subclass overrides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.sources.base import ColumnRange, PageStatistics, Source, Split
from kquery_spark.sources.dictionary_column import DictionaryColumn
from kquery_spark.sources.prefetch.fetching import Release
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Int64s


@dataclass(frozen=True)
class SourceView(Source):
    """Delegates everything to an ``addressable`` source, in which each piece of a split is one batch."""

    divisible: ClassVar[bool] = True
    columnar: ClassVar[bool] = True
    addressable: ClassVar[bool] = True

    source: Source

    def _row_ranges(self, file: int) -> dict[int, tuple[int, int]]:
        """For each piece of a file, the position of its first row in the file, and the number of rows in the piece.

        The source's splits must have one piece each and exact row counts.
        """
        return self.once(("row ranges", file), lambda: _row_ranges(self.source.splits_of(file)))

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.source.schema

    @override
    def splits(self) -> list[Split]:
        return self.source.splits()

    @override
    def splits_of(self, file: int) -> list[Split]:
        return self.source.splits_of(file)

    @override
    def coalesce(self, splits: Sequence[Split], columns: Sequence[str]) -> tuple[Split, int]:
        return self.source.coalesce(splits, columns)

    @override
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        return self.source.read(split, columns)

    @override
    def under_filters(self, null_filters: bool) -> Source:
        return replace(self, source=self.source.under_filters(null_filters))

    @override
    def without_kernels(self) -> Source:
        return replace(self, source=self.source.without_kernels())

    @override
    def read_rows(self, split: Split, columns: Sequence[str], rows: Int64s) -> Batch:
        return self.source.read_rows(split, columns, rows)

    @property
    @override
    def holds_rows(self) -> bool:
        return self.source.holds_rows

    @override
    def is_remote(self, split: Split) -> bool:
        return self.source.is_remote(split)

    @override
    def fetch(self, split: Split, columns: Sequence[str], rows: Int64s | None = None) -> Release:
        return self.source.fetch(split, columns, rows)

    @override
    def dictionary_column(
        self, split: Split, column: str, rows: Int64s | None = None
    ) -> DictionaryColumn | None:
        return self.source.dictionary_column(split, column, rows)

    @override
    def page_statistics(self, split: Split, columns: Sequence[str]) -> PageStatistics | None:
        return self.source.page_statistics(split, columns)

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        return self.source.ranges(split, column)

    @override
    def column_bytes(self, columns: Sequence[str]) -> int:
        return self.source.column_bytes(columns)

    @override
    def check_files(self, columns: Sequence[str]) -> None:
        self.source.check_files(columns)

    @override
    def row_count(self) -> int | None:
        return self.source.row_count()


def _row_ranges(splits: Sequence[Split]) -> dict[int, tuple[int, int]]:
    ranges: dict[int, tuple[int, int]] = {}
    start = 0
    for split in splits:
        ranges[split.pieces[0]] = start, split.rows
        start += split.rows
    return ranges
