"""Files without the rows that are deleted by value: Iceberg's equality deletes, as Flink writes them.

Iceberg's specification, "Equality Delete Files": a row is deleted if a delete file has a row with the same values in all of
the delete file's columns; NULL equals NULL. The table's metadata says which delete files apply to a data file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from kquery_spark.sources.base import ColumnRange, PageStatistics, Source, Split
from kquery_spark.sources.dictionary_column import DictionaryColumn
from kquery_spark.sources.prefetch.fetching import Release
from kquery_spark.sources.views.base import SourceView
from kquery_spark.types.batch import Batch, pick
from kquery_spark.types.vector import Int64s

_MAX_CACHED = 4  # row groups, which are read once for each column, and combinations of delete files


@dataclass(frozen=True)
class WithoutDeletedValues(SourceView):
    """A source without the rows that are deleted by their values.

    table_schema: the columns to read; the source may have more, which only decide which rows are deleted. values: the delete
    files, whose columns have the source's names. deleted: for each file, which of ``values`` apply to it, by index.

    Only reading tells how many rows are live, so the row counts of splits are upper bounds.
    """

    addressable: ClassVar[bool] = False

    table_schema: pa.Schema
    values: tuple[Source, ...]
    deleted: tuple[tuple[int, ...], ...]

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.table_schema

    @override
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        for piece in split.pieces:
            one = replace(split, pieces=(piece,))
            live = self._live(one) if self.deleted[split.file] else None
            for batch in self.source.read(one, columns):
                yield batch if live is None else pick(batch, live)

    @cached_property
    def _live(self) -> Callable[[Split], Int64s]:
        """The live rows of a split of one piece, by their numbers in it."""
        return lru_cache(maxsize=_MAX_CACHED)(self._find_live)

    @cached_property
    def _deleted_values(self) -> Callable[[tuple[int, ...]], list[pa.Table]]:
        """The rows of delete files, given their indexes; one table for all files of the same columns."""
        return lru_cache(maxsize=_MAX_CACHED)(self._read_deleted_values)

    def _find_live(self, split: Split) -> Int64s:
        tables = self._deleted_values(self.deleted[split.file])
        columns = list(dict.fromkeys(name for table in tables for name in table.column_names))
        (batch,) = self.source.read(split, columns)
        rows = pa.Table.from_batches([batch.to_arrow()])
        deleted = np.zeros(batch.num_rows, np.bool_)
        for table in tables:
            deleted |= _are_among(rows, table)
        return np.flatnonzero(~deleted)

    def _read_deleted_values(self, numbers: tuple[int, ...]) -> list[pa.Table]:
        by_columns: dict[tuple[str, ...], list[pa.Table]] = defaultdict(list)
        for number in numbers:
            source = self.values[number]
            by_columns[tuple(source.schema.names)].append(_rows(source))
        return [pa.concat_tables(tables) for tables in by_columns.values()]

    @override
    def read_rows(self, split: Split, columns: Sequence[str], rows: Int64s) -> Batch:
        return pick(next(self.read(split, columns)), rows)

    @override
    def fetch(self, split: Split, columns: Sequence[str], rows: Int64s | None = None) -> Release:
        keys = (name for number in self.deleted[split.file] for name in self.values[number].schema.names)
        return super().fetch(split, list(dict.fromkeys([*keys, *columns])))  # of all rows

    @override
    def dictionary_column(
        self, split: Split, column: str, rows: Int64s | None = None
    ) -> DictionaryColumn | None:
        return None

    @override
    def page_statistics(self, split: Split, columns: Sequence[str]) -> PageStatistics | None:
        return None

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        known = super().ranges(split, column)
        return known if known is None or not self.deleted[split.file] else known.of_some_rows()

    @override
    def check_files(self, columns: Sequence[str]) -> None:
        keys = (name for source in self.values for name in source.schema.names)
        super().check_files(list(dict.fromkeys([*columns, *keys])))
        for source in self.values:
            source.check_files(source.schema.names)

    @override
    def row_count(self) -> int | None:
        return None if any(self.deleted) else super().row_count()


def _rows(source: Source) -> pa.Table:
    names = source.schema.names
    batches = [batch.to_arrow() for split in source.splits() for batch in source.read(split, names)]
    return pa.Table.from_batches(batches, source.schema)


def _are_among(rows: pa.Table, deleted: pa.Table) -> npt.NDArray[np.bool_]:
    """For each row whether ``deleted`` has a row with the same values in all columns of ``deleted``."""
    first, *others = deleted.column_names
    row_codes, deleted_codes, _ = _codes(rows[first], deleted[first])
    for name in others:
        row_others, deleted_others, count = _codes(rows[name], deleted[name])
        row_pairs, deleted_pairs = (
            _pairs(row_codes, row_others, count),
            _pairs(deleted_codes, deleted_others, count),
        )
        row_codes, deleted_codes, _ = _codes(row_pairs, deleted_pairs)
    among: npt.NDArray[np.bool_] = pc.is_valid(row_codes).to_numpy()
    return among


def _codes(column: pa.ChunkedArray, deleted: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray, int]:
    """The indexes of both columns' values among the distinct deleted ones, NULL for others; how many are distinct."""
    distinct = deleted.unique()
    codes = pc.index_in(column, value_set=distinct)
    return codes, pc.index_in(deleted, value_set=distinct), len(distinct)


def _pairs(first: pa.ChunkedArray, second: pa.ChunkedArray, count: int) -> pa.ChunkedArray:
    """Pairs of codes, the second of which are below ``count``, as one number each."""
    return pc.add(pc.multiply(first.cast(pa.int64()), pa.scalar(count, pa.int64())), second.cast(pa.int64()))
