"""Applies Iceberg's equality deletes, which Flink writes, to a scan.

Iceberg's specification, "Equality Delete Files": a row is deleted if a delete file has a row with the same values in all of
the delete file's columns; NULL equals NULL. The table's metadata says which delete files apply to a data file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from kquery_spark.cached_property import cached_property
from kquery_spark.sources.base import ColumnRange, PageStatistics, Source, Split
from kquery_spark.sources.dictionary_column import DictionaryColumn
from kquery_spark.sources.prefetch.fetching import Release
from kquery_spark.sources.views.base import SourceView
from kquery_spark.types.batch import Batch, pick
from kquery_spark.types.vector import Int64s

# The number of splits whose live rows are cached, because every column of a split needs them, and of combinations of delete
# files whose values are cached.
_MAX_CACHED = 4


@dataclass(frozen=True)
class EqualityDeletesView(SourceView):
    """A source without the rows that equality deletes remove.

    table_schema: the columns to read; the source may have further columns that only delete files need. values: the delete
    files, whose columns have the source's names. deleted: for each data file, the indexes in ``values`` of the delete files
    that apply to it.

    The number of live rows is unknown before the data is read, so the row counts of splits are upper bounds.
    """

    addressable: ClassVar[bool] = False

    table_schema: pa.Schema
    values: tuple[Source, ...]
    deleted: tuple[tuple[int, ...], ...]

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.table_schema

    @property
    @override
    def holds_rows(self) -> bool:
        return True  # ``_live`` and ``_deleted_values`` cache rows

    @override
    def without_kernels(self) -> Source:
        values = tuple(source.without_kernels() for source in self.values)
        return replace(self, source=self.source.without_kernels(), values=values)

    def _with_key_columns(self, split: Split, columns: Sequence[str]) -> list[str]:
        """Return these columns, and those that the delete files of a split's file need."""
        keys = (name for number in self.deleted[split.file] for name in self.values[number].schema.names)
        return list(dict.fromkeys([*keys, *columns]))

    @override
    def coalesce(self, splits: Sequence[Split], columns: Sequence[str]) -> tuple[Split, int]:
        return super().coalesce(splits, self._with_key_columns(splits[0], columns))

    @override
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        live = self._live(split) if self.deleted[split.file] else None
        for batch in self.source.read(split, columns):
            yield batch if live is None else pick(batch, live)

    @cached_property
    def _live(self) -> Callable[[Split], Int64s]:
        """Cached function that returns the positions of the live rows in a split of one piece, or a coalesced split."""
        return lru_cache(maxsize=_MAX_CACHED)(self._find_live)

    @cached_property
    def _deleted_values(self) -> Callable[[tuple[int, ...]], list[pa.Table]]:
        """Cached function that reads delete files by their indexes, into one table per set of columns."""
        return lru_cache(maxsize=_MAX_CACHED)(self._read_deleted_values)

    def _find_live(self, split: Split) -> Int64s:
        tables = self._deleted_values(self.deleted[split.file])
        columns = list(dict.fromkeys(name for table in tables for name in table.column_names))
        (batch,) = self.source.read(split, columns)
        rows = pa.Table.from_batches([batch.to_arrow()])
        deleted = np.zeros(batch.num_rows, np.bool_)
        for table in tables:
            deleted |= _has_equal_row(rows, table)
        return np.flatnonzero(~deleted)

    def _read_deleted_values(self, numbers: tuple[int, ...]) -> list[pa.Table]:
        by_columns: dict[tuple[str, ...], list[pa.Table]] = defaultdict(list)
        for number in numbers:
            source = self.values[number]
            by_columns[tuple(source.schema.names)].append(_read_table(source))
        return [pa.concat_tables(tables) for tables in by_columns.values()]

    @override
    def read_rows(self, split: Split, columns: Sequence[str], rows: Int64s) -> Batch:
        return pick(next(self.read(split, columns)), rows)

    @override
    def fetch(self, split: Split, columns: Sequence[str], rows: Int64s | None = None) -> Release:
        # All rows, because the key columns of every row decide which rows are live.
        return super().fetch(split, self._with_key_columns(split, columns))

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
        return known if known is None or not self.deleted[split.file] else known.for_row_subset()

    @override
    def check_files(self, columns: Sequence[str]) -> None:
        keys = (name for source in self.values for name in source.schema.names)
        super().check_files(list(dict.fromkeys([*columns, *keys])))
        for source in self.values:
            source.check_files(source.schema.names)

    @override
    def row_count(self) -> int | None:
        return None if any(self.deleted) else super().row_count()


def _read_table(source: Source) -> pa.Table:
    names = source.schema.names
    batches = [batch.to_arrow() for split in source.splits() for batch in source.read(split, names)]
    return pa.Table.from_batches(batches, source.schema)


def _has_equal_row(rows: pa.Table, deleted: pa.Table) -> npt.NDArray[np.bool_]:
    """Return for each row whether ``deleted`` has a row with the same values in all columns of ``deleted``.

    Each column is replaced by indices into the distinct deleted values, with NULL for values that are never deleted. Then
    column by column, the indices so far and those of the next column are combined to one number, which is again replaced by
    an index. Example: if (1, x) and (2, y) are deleted, then row (1, y) has the indices 0 and 1, the pair 0 * 2 + 1 = 1.
    The deleted pairs are 0 * 2 + 0 = 0 and 1 * 2 + 1 = 3, so the row is live.
    """
    first, *others = deleted.column_names
    row_indices, deleted_indices, _ = _indices(rows[first], deleted[first])
    for name in others:
        row_others, deleted_others, count = _indices(rows[name], deleted[name])
        row_pairs, deleted_pairs = (
            _pair_numbers(row_indices, row_others, count),
            _pair_numbers(deleted_indices, deleted_others, count),
        )
        row_indices, deleted_indices, _ = _indices(row_pairs, deleted_pairs)
    is_deleted: npt.NDArray[np.bool_] = pc.is_valid(row_indices).to_numpy()
    return is_deleted


def _indices(
    column: pa.ChunkedArray, deleted: pa.ChunkedArray
) -> tuple[pa.ChunkedArray, pa.ChunkedArray, int]:
    """Return the indices of both columns' values among the distinct deleted values, and the number of the latter.

    Values that are not deleted have the index NULL. NULL itself has an index if it is deleted.
    """
    distinct = deleted.unique()
    indices = pc.index_in(column, value_set=distinct)
    return indices, pc.index_in(deleted, value_set=distinct), len(distinct)


def _pair_numbers(first: pa.ChunkedArray, second: pa.ChunkedArray, count: int) -> pa.ChunkedArray:
    """Combine two columns of indices to one number per row. The second indices are below ``count``."""
    return pc.add(pc.multiply(first.cast(pa.int64()), pa.scalar(count, pa.int64())), second.cast(pa.int64()))
