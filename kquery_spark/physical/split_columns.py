"""The columns of a split as a scan reads them step by step: for the rows that are left, or as codes of distinct values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.physical.dynamic_filters.runtime_filter import RuntimeFilter
from kquery_spark.sources.base import Source, Split
from kquery_spark.sources.coded import CodedColumn
from kquery_spark.types.batch import Batch, pick
from kquery_spark.types.vector import Int64s, Vector

_MIN_INDEXED_ROWS = 1 << 18  # for dictionary indices to save more than reading them costs

PassingValues = tuple[CodedColumn, npt.NDArray[np.bool_]]
"""A column, and a mask of its values that pass."""


class FilteredColumns:
    """Columns read so far of the rows that passed; ``selected`` are their numbers in the split (None: all)."""

    def __init__(self, batch: Batch, selected: Int64s | None = None) -> None:
        self.batch = batch
        self.selected = selected

    @property
    def rows(self) -> int:
        """The number of rows that passed."""
        return self.batch.num_rows

    def where(self, mask: pa.Array | None) -> FilteredColumns:
        """Without the rows where the mask is not true."""
        if mask is None or self.rows == 0:
            return self
        hits = mask.true_count
        if hits == self.rows:
            return self
        places = np.flatnonzero(true_flags(mask))
        selected = places if self.selected is None else self.selected[places]
        return FilteredColumns(pick(self.batch, places), selected)

    def with_columns(self, more: Batch) -> FilteredColumns:
        """With further columns of the split, narrowed to the rows that passed."""
        return self.beside(more if self.selected is None else pick(more, self.selected))

    def beside(self, more: Batch) -> FilteredColumns:
        """With further columns that have only the rows that passed."""
        fields = [*self.batch.schema, *more.schema]
        return FilteredColumns(
            Batch(pa.schema(fields), (*self.batch.columns, *more.columns), self.rows), self.selected
        )


class SplitColumns:
    """The columns of a split: as dictionary indices where an operator uses these, otherwise of the rows left."""

    def __init__(self, source: Source, split: Split) -> None:
        self._source = source
        self._split = split
        self._coded: dict[str, CodedColumn | None] = {}

    def dtype(self, name: str) -> pa.DataType:
        """The Spark type of a column."""
        return self._source.schema.field(name).type

    def is_worthwhile(self, name: str) -> bool:
        """Whether the codes of a column are there sooner than pyarrow's values, as those of many rows or of NULLs are."""
        return self.rows >= _MIN_INDEXED_ROWS or self._source.has_nulls(self._split, name)

    @property
    def rows(self) -> int:
        """Rows of the split."""
        return self._split.rows

    def coded(self, name: str, rows: Int64s | None) -> CodedColumn | None:
        """The column as codes, None where it has none or where reading just these rows takes less."""
        if name not in self._coded:
            self._coded[name] = self._source.coded(self._split, name, rows)
        return self._coded[name]

    def before_any_column(self, rows: Int64s | None) -> list[FilteredColumns]:
        """The states to begin with: these rows without a column; none (None) where nothing is known of the rows."""
        return [] if rows is None else [FilteredColumns(Batch(pa.schema([]), (), len(rows)), rows)]

    def beside(self, states: list[FilteredColumns], columns: list[str]) -> list[FilteredColumns]:
        """The states with further columns of the rows that are left; all rows where nothing was read before."""
        source, split = self._source, self._split
        if not states:
            return [FilteredColumns(b) for b in source.read(split, columns)]
        if not columns:
            return states
        selected = states[0].selected
        if source.addressable and selected is not None:
            (state,) = states
            return [state.beside(self._of_rows(columns, selected))]
        return [s.with_columns(b) for s, b in zip(states, source.read(split, columns), strict=True)]

    def _of_rows(self, columns: list[str], rows: Int64s) -> Batch:
        coded = self._worthwhile(columns, rows)
        rest = self._source.read_rows(self._split, [c for c in columns if c not in coded], rows)
        arrays = dict(zip(rest.schema.names, rest.columns, strict=True))
        arrays |= {name: column.take(rows) for name, column in coded.items()}
        schema = pa.schema([self._source.schema.field(c) for c in columns])
        return Batch(schema, tuple(arrays[c] for c in columns), len(rows))

    def _worthwhile(self, columns: list[str], rows: Int64s) -> dict[str, CodedColumn]:
        """The columns that are dictionary indices already, or are decoded sooner as such."""
        for name in columns:
            if name not in self._coded and self.is_worthwhile(name):
                self.coded(name, rows)
        return {c: coded for c in columns if (coded := self._coded.get(c)) is not None}


def decided_by_values(
    runtime_filter: RuntimeFilter, read: SplitColumns, rows: Int64s | None
) -> list[PassingValues] | None:
    """The columns of a run-time filter with a mask of their values that pass; None if it has to see the rows themselves."""
    places = []
    for column_index, name in enumerate(runtime_filter.columns):
        column = read.coded(name, rows)
        if column is None:
            return None
        # a filter may know nothing of NULL, of which there is no row
        values = column.values if column.nulls else column.values[:-1]
        passes = runtime_filter.passing_values(column_index, Vector(read.dtype(name), values))
        if passes is None:
            return None
        places.append((column, passes if column.nulls else np.append(passes, False)))
    return places


def rows_of(places: Sequence[PassingValues], rows: Int64s | None) -> Int64s | None:
    """The rows, of ``rows`` (None: of all), that have a passing value in any of the columns."""
    hits = []
    for column, passing_values in places:
        if passing_values.all() or (not column.nulls and passing_values[:-1].all()):
            return rows
        if passing_values.any():
            hits.append(column.rows_where(passing_values, rows))
    if not hits:
        return np.zeros(0, np.int64)
    return hits[0] if len(hits) == 1 else reduce(np.union1d, hits)


def true_flags(mask: pa.Array) -> npt.NDArray[np.bool_]:
    """A mask without NULLs."""
    flags: npt.NDArray[np.bool_] = (pc.fill_null(mask, False) if mask.null_count else mask).to_numpy(
        zero_copy_only=False
    )
    return flags
