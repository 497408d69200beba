"""Files of which rows are deleted by their values: Iceberg's equality deletes, as Flink writes them.

Iceberg's specification, "Equality Delete Files": a row is deleted where a file of deleted values has one with the same
values in all columns of that file; NULL equals NULL. Which files apply to a data file is for the table's metadata to say.
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

from kquery_spark.sources.base import ColumnRange, RowStretches, Source, Split
from kquery_spark.sources.coded import CodedColumn
from kquery_spark.sources.view import SourceView
from kquery_spark.types.batch import Batch, pick
from kquery_spark.types.vector import Int64s

# Row groups whose rows are kept, as each column asks for them, and combinations of files of deleted values.
_MAX_CACHED = 4


@dataclass(frozen=True)
class WithoutDeletedValues(SourceView):
    """A source without the rows that are deleted by their values.

    table_schema: the columns to read; the source may have others, which only decide what is deleted. values: deleted values,
    under the source's names of their columns. deleted: for each file the numbers of those of ``values`` that apply to it.

    How many rows are left is not known before they are read, so row counts of splits are upper bounds.
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
        """The rows of a split of one piece that are left."""
        return lru_cache(maxsize=_MAX_CACHED)(self._find_live)

    @cached_property
    def _deleted_values(self) -> Callable[[tuple[int, ...]], list[pa.Table]]:
        """Deleted values by their numbers, those of the same columns together."""
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
    def coded(self, split: Split, column: str, rows: Int64s | None = None) -> CodedColumn | None:
        return None

    @override
    def stretches(self, split: Split, columns: Sequence[str]) -> RowStretches | None:
        return None

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        """Of a file with deleted rows the bounds, but not how many values are NULL, nor so how many are not."""
        known = super().ranges(split, column)
        return known if known is None or not self.deleted[split.file] else replace(known, nulls=None)

    @override
    def check_files(self, columns: Sequence[str]) -> None:
        deciding = (name for source in self.values for name in source.schema.names)
        super().check_files(list(dict.fromkeys([*columns, *deciding])))
        for source in self.values:
            source.check_files(source.schema.names)

    @override
    def row_count(self) -> int | None:
        return None if any(self.deleted) else super().row_count()


def _rows(source: Source) -> pa.Table:
    names = source.schema.names
    batches = [batch.to_arrow() for split in source.splits() for batch in source.read(split, names)]
    return pa.Table.from_batches(batches, source.schema)


def _are_among(rows: pa.Table, values: pa.Table) -> npt.NDArray[np.bool_]:
    """For each row whether its columns of ``values`` are as in a row there."""
    codes = own = None
    for column, deleted in zip(rows.select(values.column_names).columns, values.columns, strict=True):
        numbers, own_numbers, count = _numbered(column, deleted)
        if codes is None:
            codes, own = numbers, own_numbers
        else:
            codes, own, _ = _numbered(_pairs(codes, numbers, count), _pairs(own, own_numbers, count))
    found: npt.NDArray[np.bool_] = pc.is_valid(codes).to_numpy()
    return found


def _numbered(
    column: pa.ChunkedArray, deleted: pa.ChunkedArray
) -> tuple[pa.ChunkedArray, pa.ChunkedArray, int]:
    """Values, and the deleted ones, as numbers of the distinct deleted ones (NULL: none of these); how many those are."""
    distinct = deleted.unique()
    numbers = pc.index_in(column, value_set=distinct)
    return numbers, pc.index_in(deleted, value_set=distinct), len(distinct)


def _pairs(first: pa.ChunkedArray, second: pa.ChunkedArray, count: int) -> pa.ChunkedArray:
    """Each two numbers as one; the second is below ``count``."""
    return pc.add(pc.multiply(first.cast(pa.int64()), pa.scalar(count, pa.int64())), second.cast(pa.int64()))
