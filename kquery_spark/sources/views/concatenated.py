"""Concatenates several sources with the same columns, for tables whose files must be read in different ways.

A file has a number in the concatenation and another one in its own source: with two sources of 3 and 2 files, file 4 is
file 1 of the second source. Every method translates the file number of its split and delegates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.cached_property import cached_property
from kquery_spark.sources.base import ColumnRange, PageStatistics, Source, Split
from kquery_spark.sources.dictionary_column import DictionaryColumn
from kquery_spark.sources.prefetch.fetching import Release
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Int64s


@dataclass(frozen=True)
class ConcatenatedSource(Source):
    """Concatenates addressable sources with equal schemas; ``files`` has the number of files of each source."""

    divisible: ClassVar[bool] = True
    columnar: ClassVar[bool] = True
    addressable: ClassVar[bool] = True

    sources: tuple[Source, ...]
    files: tuple[int, ...]

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.sources[0].schema

    @cached_property
    def _by_file(self) -> list[tuple[Source, int]]:
        """For each file, its source and its number in that source."""
        return [
            (source, file)
            for source, files in zip(self.sources, self.files, strict=True)
            for file in range(files)
        ]

    @cached_property
    def _splits(self) -> list[Split]:
        splits, before = [], 0
        for source, files in zip(self.sources, self.files, strict=True):
            splits += [replace(split, file=split.file + before) for split in source.splits()]
            before += files
        return splits

    @override
    def splits(self) -> list[Split]:
        return self._splits

    @override
    def splits_of(self, file: int) -> list[Split]:
        source, own = self._by_file[file]
        return [replace(split, file=file) for split in source.splits_of(own)]

    def _in_source(self, split: Split) -> tuple[Source, Split]:
        source, file = self._by_file[split.file]
        return source, replace(split, file=file)

    @override
    def coalesce(self, splits: Sequence[Split], columns: Sequence[str]) -> tuple[Split, int]:
        source, _ = self._in_source(splits[0])
        own, count = source.coalesce([self._in_source(split)[1] for split in splits], columns)
        return replace(own, file=splits[0].file), count

    @override
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        source, own = self._in_source(split)
        return source.read(own, columns)

    @override
    def read_rows(self, split: Split, columns: Sequence[str], rows: Int64s) -> Batch:
        source, own = self._in_source(split)
        return source.read_rows(own, columns, rows)

    @property
    @override
    def holds_rows(self) -> bool:
        return any(source.holds_rows for source in self.sources)

    @override
    def is_remote(self, split: Split) -> bool:
        source, own = self._in_source(split)
        return source.is_remote(own)

    @override
    def fetch(self, split: Split, columns: Sequence[str], rows: Int64s | None = None) -> Release:
        source, own = self._in_source(split)
        return source.fetch(own, columns, rows)

    @override
    def dictionary_column(
        self, split: Split, column: str, rows: Int64s | None = None
    ) -> DictionaryColumn | None:
        source, own = self._in_source(split)
        return source.dictionary_column(own, column, rows)

    @override
    def page_statistics(self, split: Split, columns: Sequence[str]) -> PageStatistics | None:
        source, own = self._in_source(split)
        return source.page_statistics(own, columns)

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        source, own = self._in_source(split)
        return source.ranges(own, column)

    @override
    def without_kernels(self) -> Source:
        return replace(self, sources=tuple(source.without_kernels() for source in self.sources))

    @override
    def under_filters(self, null_filters: bool) -> Source:
        return replace(self, sources=tuple(source.under_filters(null_filters) for source in self.sources))

    @override
    def column_bytes(self, columns: Sequence[str]) -> int:
        return sum(source.column_bytes(columns) for source in self.sources)

    @override
    def check_files(self, columns: Sequence[str]) -> None:
        for source in self.sources:
            source.check_files(columns)

    @override
    def row_count(self) -> int | None:
        counts = [source.row_count() for source in self.sources]
        return None if None in counts else sum(count for count in counts if count is not None)
