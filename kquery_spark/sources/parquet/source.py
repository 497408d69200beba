"""The Parquet source: each row group is a split, and footers and page indexes provide the statistics for pruning.

A column is read by one of three readers, tried in this order in ``read_rows``:

1. If only few pages hold the selected rows, pyarrow reads these pages from a small file in memory (``pages.py``).
2. Compiled loops decode flat columns of common types (``column_reader.py``).
3. pyarrow decodes all rows of the other columns, and the selected rows are taken from these.

``read`` returns all rows. It skips the first reader, and uses the second one for chunks that it decodes faster than pyarrow,
and for coalesced row groups.

The loops read several small row groups together (``coalesce``), because the Python calls for a row group can take as long as
decoding it. If the loops then find that they cannot read a column, pyarrow reads its row groups one by one.

Low-cardinality strings stay dictionary-encoded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.cached_property import cached_property
from kquery_spark.errors import SourceError
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.sources.base import ColumnRange, DataFile, PageStatistics, Source, Split
from kquery_spark.sources.bucketing import Bucketing
from kquery_spark.sources.dictionary_column import DictionaryColumn
from kquery_spark.sources.files import check_no_case_difference, local_path, naming_file
from kquery_spark.sources.parquet.calendar import CORRECTED_ALL, RebaseSettings
from kquery_spark.sources.parquet.column_checks import check_storage, check_type
from kquery_spark.sources.parquet.column_types import (
    mismatch,
    readable_as,
)
from kquery_spark.sources.parquet.file import OpenFile, TypedColumn
from kquery_spark.sources.parquet.open_files import open_file, open_files
from kquery_spark.sources.parquet.variants import (
    check_variant,
    shredded_parts,
    variant_column,
)
from kquery_spark.sources.partitions import constant, partition_range
from kquery_spark.sources.prefetch.fetching import Release, nothing_to_release
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch, one_array, pick
from kquery_spark.types.vector import Int64s, from_arrow, widen


@dataclass(frozen=True)
class ParquetSource(Source):
    """Parquet files with a common table schema; partition columns come last, as in Spark.

    compiled: whether the compiled loops may be used. defaults: pairs of a column and its value in files that lack the
    column; other missing columns are NULL. variant_fields: for variant columns, the fields that the query needs; a
    column that is not listed is read whole.
    """

    divisible: ClassVar[bool] = True
    columnar: ClassVar[bool] = True
    addressable: ClassVar[bool] = True

    files: tuple[DataFile, ...]
    table_schema: pa.Schema
    partition_columns: tuple[str, ...] = ()
    compiled: bool = True
    rebase: RebaseSettings = CORRECTED_ALL
    defaults: tuple[tuple[str, Any], ...] = ()
    bucketing: Bucketing | None = None
    variant_fields: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.table_schema

    @cached_property
    def _splits(self) -> list[Split]:
        return [
            split for file, opened in enumerate(open_files(self.files)) for split in _splits_in(file, opened)
        ]

    def splits(self) -> list[Split]:
        """One split per row group."""
        return self._splits

    @override
    def splits_of(self, file: int) -> list[Split]:
        return _splits_in(file, open_file(self.files[file]))

    @override
    def row_count(self) -> int | None:
        return sum(split.rows for split in self._splits)

    @override
    def column_bytes(self, columns: Sequence[str]) -> int:
        # looks up each open file once, not once per column
        return self.once(
            ("bytes", *columns), lambda: sum(self._bytes_of(file, columns) for file in self.files)
        )

    def _bytes_of(self, file: DataFile, columns: Sequence[str]) -> int:
        opened = open_file(file)
        return sum(opened.column_bytes(column) for column in columns)

    def _column_ranges(self, file: int, column: str) -> list[ColumnRange | None] | None:
        """Statistics of a file's row groups; None if the file lacks the column."""
        # looks up the open file once per column, not once per row group
        return self.once(("ranges", file, column), lambda: self._ranges(open_file(self.files[file]), column))

    def _ranges(self, opened: OpenFile, column: str) -> list[ColumnRange | None] | None:
        ranges = opened.column_ranges(column)
        if ranges is None or opened.rebase(column, self.rebase) is None:
            return ranges
        # statistics are in the file's calendar, so only the null counts can be used
        return [None if r is None else ColumnRange(None, None, r.nulls) for r in ranges]

    @override
    def check_files(self, columns: Sequence[str]) -> None:
        """Reads the footers only, no data."""
        fields = [self.table_schema.field(c) for c in columns if c not in self.partition_columns]
        for file, opened in zip(self.files, open_files(self.files), strict=True):
            for field in fields:
                if field.name in opened.names:
                    check_type(opened, field, self.rebase)
                    check_storage(opened, field.name)
                else:
                    check_no_case_difference(field.name, opened.names, file.path)

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        if column in self.partition_columns:
            return partition_range(self.files[split.file], self.partition_columns, column, split.rows)
        ranges = self._column_ranges(split.file, column)
        if ranges is None:
            return None
        if len(split.pieces) == 1:
            return ranges[split.pieces[0]]
        nulls = [None if (known := ranges[piece]) is None else known.nulls for piece in split.pieces]
        return ColumnRange(None, None, None if None in nulls else sum(n for n in nulls if n is not None))

    @override
    def coalesce(self, splits: Sequence[Split], columns: Sequence[str]) -> tuple[Split, int]:
        first = splits[0]
        if len(splits) == 1 or self._kernels() is None or any(split.bounds for split in splits):
            return first, 1
        opened = open_file(self.files[first.file], check=False)
        stored = self._stored(opened, columns)
        (group,) = first.pieces
        together = list(takewhile(lambda split: opened.can_coalesce(group, split.pieces[0], stored), splits))
        if len(together) < 2:
            return first, 1
        groups = tuple(split.pieces[0] for split in together)
        nbytes = sum(split.nbytes for split in together)
        return Split(first.file, groups, _row_count(opened, groups), nbytes), len(together)

    @override
    def without_kernels(self) -> Source:
        return replace(self, compiled=False)

    @override
    def with_variant_fields(self, fields: Mapping[str, Collection[str]]) -> Source:
        return replace(
            self, variant_fields=tuple((column, tuple(sorted(names))) for column, names in fields.items())
        )

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        """Yield one batch with all rows of the split, which can be a coalesced one."""
        yield self._read_all_rows(split, columns, self._kernels())

    def _read_all_rows(self, split: Split, columns: Sequence[str], kernels: ModuleType | None) -> Batch:
        """Read all rows of the columns: with compiled loops where they are faster, otherwise with pyarrow."""
        opened, groups = open_file(self.files[split.file]), split.pieces
        stored = self._stored(opened, columns)
        faster = [c for c in stored if len(groups) > 1 or opened.loops_are_faster(groups[0], c)]
        arrays = {
            name: pa.chunked_array([array])
            for name, column in opened.column_readers(groups, faster, kernels).items()
            if (array := column.read()) is not None
        }
        rest = [c for c in stored if c not in arrays]
        if rest:
            parts = self._parts(opened, rest)
            by_group = [opened.read(group, parts).columns for group in groups]
            for name, of_groups in zip(rest, zip(*by_group, strict=True), strict=True):
                chunks = [chunk for column in of_groups for chunk in column.chunks]
                arrays[name] = pa.chunked_array(chunks, of_groups[0].type)
        return self._batch(opened, columns, arrays, _row_count(opened, groups))

    def _kernels(self) -> ModuleType | None:
        """The compiled loops; None if they are not loaded or must not be used."""
        return FILE_LOOPS.kernels() if self.compiled else None

    @override
    def read_rows(self, split: Split, columns: Sequence[str], rows: Int64s) -> Batch:
        """Chooses a reader for each column, in the order that the module's docstring describes."""
        opened = open_file(self.files[split.file])
        group = split.pieces[0]
        stored = self._stored(opened, columns)
        kernels = self._kernels()
        is_coalesced = len(split.pieces) > 1  # ``coalesce`` leaves out chunks that are read page by page
        paged = [] if is_coalesced else [opened.pages_with_rows(group, c, rows, kernels) for c in stored]
        pages = {p.name: p for p in paged if p is not None}
        # a loop returns None for a chunk that it cannot read, which leaves the column to pyarrow
        arrays = {
            name: self._array(opened, name, pa.chunked_array([array]))
            for name, column in opened.column_readers(
                split.pieces, [c for c in stored if c not in pages], kernels
            ).items()
            if (array := column.read(rows)) is not None
        }
        rest = [c for c in columns if c not in pages and c not in arrays]
        if rest:
            # The loops have already declined these columns.
            arrays |= zip(rest, pick(self._read_all_rows(split, rest, None), rows).columns, strict=True)
        if pages:
            for page, data in zip(
                pages.values(), opened.read_pages(group, list(pages.values())), strict=True
            ):
                array = self._array(opened, page.name, data)
                arrays[page.name] = array.take(pa.array(page.selection.positions(rows)))
        return Batch(self._fields(columns), tuple(arrays[c] for c in columns), len(rows))

    @override
    def is_remote(self, split: Split) -> bool:
        return local_path(self.files[split.file].path) is None

    @override
    def fetch(self, split: Split, columns: Sequence[str], rows: Int64s | None = None) -> Release:
        if not self.is_remote(split):
            return nothing_to_release
        opened = open_file(self.files[split.file])
        stored = self._stored(opened, columns)
        if len(split.pieces) > 1:
            rows = None  # ``read_rows`` reads whole chunks of coalesced splits
        paged = [
            None if rows is None else opened.pages.with_rows(split.pieces[0], column, rows, before_fetch=True)
            for column in stored
        ]
        whole = [column for column, pages in zip(stored, paged, strict=True) if pages is None]
        parts, pages_to_read = self._parts(opened, whole), [pages for pages in paged if pages is not None]
        with ExitStack() as held:
            for group in split.pieces:
                held.callback(opened.hold(group, parts, pages_to_read))
            return held.pop_all().close

    @override
    def dictionary_column(
        self, split: Split, column: str, rows: Int64s | None = None
    ) -> DictionaryColumn | None:
        """Covers chunks with dictionary pages only that the compiled loops can read."""
        opened = open_file(self.files[split.file], check=False)
        kernel_module = self._kernels()
        if kernel_module is None or not self._stored(opened, [column]) or opened.rebase(column, self.rebase):
            return None
        if not all(opened.may_have_small_dictionary(group, column) for group in split.pieces):
            return None
        if rows is not None and len(split.pieces) == 1:
            if opened.pages_with_rows(split.pieces[0], column, rows, kernel_module) is not None:
                return None
        chunk = opened.column_readers(split.pieces, [column], kernel_module).get(column)
        stored = None if chunk is None else chunk.dictionary_values()
        if chunk is None or stored is None:
            return None
        return DictionaryColumn(
            values=self._array(opened, column, pa.chunked_array([stored])),
            may_have_nulls=self.has_nulls(split, column),
            rows=_row_count(opened, split.pieces),
            kernels=kernel_module,
            unpack=chunk.packed_indices,
            look_up=partial(opened.look_up_indices, split.pieces, column, stored),
        )

    @override
    def page_statistics(self, split: Split, columns: Sequence[str]) -> PageStatistics | None:
        """Uses the column index, if the file has one.

        Pages of different columns end at different rows. The row ranges are cut at the page starts of all columns: pages
        that start at rows 0, 100 and at 0, 60 of a group of 150 rows give the ranges 0-60, 60-100 and 100-150.
        """
        if len(split.pieces) > 1:
            return None
        opened = open_file(self.files[split.file], check=False)
        usable = [c for c in self._stored(opened, columns) if opened.rebase(c, self.rebase) is None]
        (group,) = split.pieces
        pages_by_column = {c: opened.pages.ranges(group, c) for c in usable}
        known = {column: pages for column, pages in pages_by_column.items() if pages is not None}
        if not known:
            return None
        starts = np.unique(np.concatenate([page_starts for page_starts, _ in known.values()]))
        return PageStatistics(starts, {c: _range_statistics(starts, *pages) for c, pages in known.items()})

    def _fields(self, columns: Sequence[str]) -> pa.Schema:
        return pa.schema([self.table_schema.field(c) for c in columns])

    def _stored(self, opened: OpenFile, columns: Sequence[str]) -> list[str]:
        """The columns that are stored in this file: not partition columns, and not missing."""
        return [c for c in columns if c not in self.partition_columns and c in opened.names]

    def _parts(self, opened: OpenFile, columns: Sequence[str]) -> list[str]:
        """The column names or leaf paths to read: the needed fields of a shredded variant, otherwise the whole column."""
        needed, parts = dict(self.variant_fields), []
        for column in columns:
            fields = needed.get(column)
            shredded = [] if fields is None else shredded_parts(opened.schema.field(column), fields)
            parts += shredded or [column]
        return parts

    def _batch(
        self,
        opened: OpenFile,
        columns: Sequence[str],
        stored_columns: Mapping[str, pa.ChunkedArray],
        rows: int,
    ) -> Batch:
        arrays = []
        for column in columns:
            dtype = self.table_schema.field(column).type
            if column in self.partition_columns:
                value = opened.file.partition[self.partition_columns.index(column)]
                arrays.append(constant(value, dtype, rows))
            elif column not in stored_columns:
                check_no_case_difference(column, opened.names, opened.file.path)
                arrays.append(constant(dict(self.defaults).get(column), dtype, rows))
            else:
                arrays.append(self._array(opened, column, stored_columns[column]))
        return Batch(self._fields(columns), tuple(arrays), rows)

    def _array(self, opened: OpenFile, column: str, data: pa.ChunkedArray) -> pa.Array:
        """Convert a column from its type in the file to the engine's form of the table's type, calendar included."""
        dtype, path = self.table_schema.field(column).type, opened.file.path
        if opened.is_in_engine_form(column, data.type, dtype, self.rebase):
            return one_array(data)
        if dtype == t.VARIANT:
            check_variant(opened, column, opened.rebase(column, self.rebase) is not None)
            with naming_file(path):
                return variant_column(one_array(data))
        rebase = opened.rebase(column, self.rebase)
        if rebase is not None:
            data = rebase.apply(data, dtype)
        typed = opened.typed(column, data, dtype)
        if not readable_as(typed.dtype, dtype, opened.has_int96(column)):
            raise SourceError(mismatch(path, column, typed.dtype, dtype))
        return _convert(typed, dtype, f"{column} of {path}")


def _row_count(opened: OpenFile, groups: Sequence[int]) -> int:
    return sum(opened.groups[group][0] for group in groups)


def _splits_in(file: int, opened: OpenFile) -> list[Split]:
    return [Split(file, (group,), rows, nbytes) for group, (rows, nbytes) in enumerate(opened.groups)]


def _range_statistics(
    starts: Int64s, page_starts: Int64s, ranges: Sequence[ColumnRange]
) -> list[ColumnRange | None]:
    """The statistics of row ranges that each lie in one page of the column.

    starts: the first row of each range, then the number of rows. A range may cover only a part of its page, so the
    page's null count does not apply to it.
    """
    pages = np.searchsorted(page_starts, starts[:-1], side="right") - 1
    return [ranges[page].for_row_subset() for page in pages]


def _convert(column: TypedColumn, dtype: pa.DataType, where: str) -> pa.Array:
    data = one_array(column.data)
    if pa.types.is_decimal(column.dtype) and pa.types.is_integer(data.type):
        data = data.cast(t.LONG)
        if column.dtype.scale == dtype.scale:
            return data
        data = widen(data, column.dtype)
    try:
        return from_arrow(dtype, data).data
    except pa.ArrowInvalid as error:
        # Only an ``ExecutionContext`` reads columns in nanoseconds; here a value is not a whole number of microseconds.
        raise SourceError(f"{where}: {error}") from None
