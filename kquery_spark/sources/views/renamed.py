"""Renames columns, for tables whose columns have other names in their files, as with column mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.cached_property import cached_property
from kquery_spark.sources.base import ColumnRange, PageStatistics, Split
from kquery_spark.sources.dictionary_column import DictionaryColumn
from kquery_spark.sources.prefetch.fetching import Release
from kquery_spark.sources.views.base import SourceView
from kquery_spark.types.batch import Batch
from kquery_spark.types.labels import relabeled
from kquery_spark.types.vector import Int64s


@dataclass(frozen=True)
class RenamedColumns(SourceView):
    """Renames the source's columns and struct fields to the names in ``table_schema``, by position."""

    table_schema: pa.Schema

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.table_schema

    @cached_property
    def _stored(self) -> Mapping[str, str]:
        """Maps each column to its name in the source."""
        return dict(zip(self.table_schema.names, self.source.schema.names, strict=True))

    def _named(self, batch: Batch, columns: Sequence[str]) -> Batch:
        schema = pa.schema([self.table_schema.field(column) for column in columns])
        renamed = tuple(
            renamed_array(array, old.type, new.type)
            for array, old, new in zip(batch.columns, batch.schema, schema, strict=True)
        )
        return Batch(schema, renamed, batch.num_rows)

    @override
    def coalesce(self, splits: Sequence[Split], columns: Sequence[str]) -> tuple[Split, int]:
        return self.source.coalesce(splits, [self._stored[column] for column in columns])

    @override
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        for batch in self.source.read(split, [self._stored[column] for column in columns]):
            yield self._named(batch, columns)

    @override
    def read_rows(self, split: Split, columns: Sequence[str], rows: Int64s) -> Batch:
        stored = [self._stored[column] for column in columns]
        return self._named(self.source.read_rows(split, stored, rows), columns)

    @override
    def fetch(self, split: Split, columns: Sequence[str], rows: Int64s | None = None) -> Release:
        return self.source.fetch(split, [self._stored[column] for column in columns], rows)

    @override
    def dictionary_column(
        self, split: Split, column: str, rows: Int64s | None = None
    ) -> DictionaryColumn | None:
        dictionary_column = self.source.dictionary_column(split, self._stored[column], rows)
        if dictionary_column is None:
            return None
        old = self.source.schema.field(self._stored[column]).type
        return replace(
            dictionary_column,
            values=renamed_array(dictionary_column.values, old, self.table_schema.field(column).type),
        )

    @override
    def page_statistics(self, split: Split, columns: Sequence[str]) -> PageStatistics | None:
        stored = {self._stored[column]: column for column in columns}
        page_statistics = self.source.page_statistics(split, list(stored))
        if page_statistics is None:
            return None
        return PageStatistics(
            page_statistics.starts, {stored[n]: known for n, known in page_statistics.ranges.items()}
        )

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        return self.source.ranges(split, self._stored[column])

    @override
    def column_bytes(self, columns: Sequence[str]) -> int:
        return self.source.column_bytes([self._stored[column] for column in columns])

    @override
    def check_files(self, columns: Sequence[str]) -> None:
        self.source.check_files([self._stored[column] for column in columns])


def renamed_array(array: pa.Array, old: pa.DataType, new: pa.DataType) -> pa.Array:
    """Convert an array from type ``old`` to ``new``, which differ only in the names of struct fields."""
    return relabeled(array, new) if pa.types.is_nested(old) else array
