"""Late materialization: the columns of one split, decoded only for the rows that are still selected.

A scan with the filters ``day = '2024-01-01' AND price > 10`` decodes ``day`` first. If 1,000 of 100,000 rows pass, it
decodes ``price`` for these 1,000 rows, and the other columns for the rows that pass both. A dictionary-encoded column goes
one step further: its filter runs over the dictionary (365 days instead of 100,000 rows) and then over the indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from kquery_spark.physical.dynamic_filters.runtime_filter import RuntimeFilter
from kquery_spark.sources.base import Source, Split
from kquery_spark.sources.dictionary_column import DictionaryColumn
from kquery_spark.types.batch import Batch, pick
from kquery_spark.types.vector import Flags, Int64s, Vector

_MIN_INDEXED_ROWS = 1 << 13  # for fewer rows, finding the dictionary costs more than filtering by it saves

PassingValues = tuple[DictionaryColumn, Flags]
"""A dictionary-encoded column, and the flags of its values that pass: one per value, then one for NULL."""


class FilteredColumns:
    """The columns decoded so far for the rows that passed. ``selected``: their positions in the split; None for all."""

    def __init__(self, batch: Batch, selected: Int64s | None = None) -> None:
        self.batch = batch
        self.selected = selected

    @property
    def rows(self) -> int:
        """The number of rows that passed."""
        return self.batch.num_rows

    def where(self, flags: Flags | None) -> FilteredColumns:
        """Keep the rows whose flag is True; None keeps all rows."""
        if flags is None or self.rows == 0 or flags.all():
            return self
        passing = np.flatnonzero(flags)
        selected = passing if self.selected is None else self.selected[passing]
        return FilteredColumns(pick(self.batch, passing), selected)

    def with_columns(self, more: Batch) -> FilteredColumns:
        """Add columns that hold all rows of the split; the rows that did not pass are dropped from them."""
        return self.with_selected_columns(more if self.selected is None else pick(more, self.selected))

    def with_selected_columns(self, more: Batch) -> FilteredColumns:
        """Add columns that hold only the rows that passed."""
        fields = [*self.batch.schema, *more.schema]
        return FilteredColumns(
            Batch(pa.schema(fields), (*self.batch.columns, *more.columns), self.rows), self.selected
        )


class SplitColumns:
    """Decodes columns of one split: as dictionary indices if that is cheaper, otherwise as values of the selected rows."""

    def __init__(self, source: Source, split: Split) -> None:
        self._source = source
        self._split = split
        self._dictionary_columns: dict[str, DictionaryColumn | None] = {}
        self.decoded_bytes = 0
        """The bytes of the columns that were decoded so far, after the selection of rows."""

    def dtype(self, name: str) -> pa.DataType:
        """The Spark type of a column."""
        return self._source.schema.field(name).type

    def is_worthwhile(self, name: str) -> bool:
        """True if decoding dictionary indices is faster than pyarrow decodes values: for many rows, or with NULLs."""
        return self.rows >= _MIN_INDEXED_ROWS or self._source.has_nulls(self._split, name)

    @property
    def rows(self) -> int:
        """The number of rows of the split."""
        return self._split.rows

    def dictionary_column(self, name: str, rows: Int64s | None) -> DictionaryColumn | None:
        """Return the column as dictionary indices; None if it has no dictionary, or if decoding ``rows`` is cheaper.

        The first call decides: later calls return its result, also for other rows.
        """
        if name not in self._dictionary_columns:
            self._dictionary_columns[name] = self._source.dictionary_column(self._split, name, rows)
        return self._dictionary_columns[name]

    @property
    def largest_dictionary(self) -> int:
        """The number of values in the largest dictionary that was read."""
        return max((len(c.values) for c in self._dictionary_columns.values() if c is not None), default=0)

    def initial_selection(self, rows: Int64s | None) -> list[FilteredColumns]:
        """Return the selection to which ``add_columns`` adds the first columns: ``rows`` without any column.

        If no row is excluded (None), the list is empty, and ``add_columns`` then decodes all rows.
        """
        return [] if rows is None else [FilteredColumns(Batch(pa.schema([]), (), len(rows)), rows)]

    def add_columns(self, states: list[FilteredColumns], columns: list[str]) -> list[FilteredColumns]:
        """Add columns to each selection, decoded for its rows; without a selection, decode all rows."""
        source, split = self._source, self._split
        if not states:
            return [FilteredColumns(self._count_bytes(b)) for b in source.read(split, columns)]
        if not columns:
            return states
        selected = states[0].selected
        if source.addressable and selected is not None:
            (state,) = states  # a piece of an addressable source is one batch
            return [state.with_selected_columns(self._count_bytes(self._decode_rows(columns, selected)))]
        batches = map(self._count_bytes, source.read(split, columns))
        return [s.with_columns(b) for s, b in zip(states, batches, strict=True)]

    def _count_bytes(self, batch: Batch) -> Batch:
        self.decoded_bytes += sum(column.nbytes for column in batch.columns)
        return batch

    def _decode_rows(self, columns: list[str], rows: Int64s) -> Batch:
        """Decode columns for some rows. Columns whose dictionary was filtered are taken from their decoded indices."""
        from_dictionaries = {
            name: column for name in columns if (column := self._dictionary_columns.get(name)) is not None
        }
        others = self._source.read_rows(self._split, [c for c in columns if c not in from_dictionaries], rows)
        arrays = dict(zip(others.schema.names, others.columns, strict=True))
        arrays |= {name: column.take(rows) for name, column in from_dictionaries.items()}
        schema = pa.schema([self._source.schema.field(c) for c in columns])
        return Batch(schema, tuple(arrays[c] for c in columns), len(rows))


def evaluate_on_dictionaries(
    runtime_filter: RuntimeFilter, read: SplitColumns, rows: Int64s | None
) -> list[PassingValues] | None:
    """Evaluate a run-time filter on the dictionaries of its columns; None if it has to be evaluated row by row."""
    passing_by_column = []
    for column_index, name in enumerate(runtime_filter.columns):
        column = read.dictionary_column(name, rows)
        if column is None:
            return None
        # If no row is NULL, the filter gets no NULL, because kernels take longer for arrays with NULLs.
        values = column.values_and_null if column.may_have_nulls else column.values
        passing = runtime_filter.passing_values(column_index, Vector(read.dtype(name), values))
        if passing is None:
            return None
        flags = passing if column.may_have_nulls else column.flags(passing, null_passes=False)
        passing_by_column.append((column, flags))
    return passing_by_column


def rows_of(passing_by_column: Sequence[PassingValues], rows: Int64s | None) -> Int64s | None:
    """Return the positions among ``rows`` (None: all rows) that have a passing value in any of the columns.

    One column is enough, as ``RuntimeFilter.passing_values`` defines. The last flag of a column is that of NULL.
    """
    passing_rows = []
    for column, passing_values in passing_by_column:
        count, null_passes = np.count_nonzero(passing_values[:-1]), passing_values[-1]
        if count == len(column.values) and (null_passes or not column.may_have_nulls):
            return rows
        if count or null_passes:
            passing_rows.append(column.rows_where(passing_values, rows))
    if not passing_rows:
        return np.zeros(0, np.int64)
    return passing_rows[0] if len(passing_rows) == 1 else reduce(np.union1d, passing_rows)
