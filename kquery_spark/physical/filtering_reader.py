"""Late materialization: reads the splits of a scan, and decodes columns only for the rows that can still pass.

For each split of a columnar source, the reader takes these steps, and each step sees only the rows that the one before left:

1. Statistics (row groups, pages, partition values) exclude rows without decoding anything.
2. Conditions on one dictionary-encoded column run over its dictionary, and select rows by their indices. Then, run-time
   filters of joins and of MIN/MAX aggregates do the same, if their columns have dictionaries.
3. The remaining conditions run over the decoded filter columns.
4. The remaining run-time filters run over their key columns. They come after the query's own conditions, because those
   are cheaper and usually more selective. A filter that passes a much smaller share of the rows comes before step 3
   instead, unless it depends on the other rows that it sees, as that of a top-k does.
5. The other columns are decoded for the surviving rows.

If step 1 excludes no row of several consecutive small splits, such as the row groups of most writers, these splits are
coalesced and take the other steps as one split (``split_coalescer.py``). Remote splits are prefetched one by one
(``prefetch.py``), and coalesced if they are being fetched at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from kquery_spark.errors import BatchTooLarge
from kquery_spark.expr import Call, Column, Expr, Literal
from kquery_spark.expr.properties import can_raise
from kquery_spark.logical.pruning import possible_rows
from kquery_spark.physical.dynamic_filters.runtime_filter import RuntimeFilter
from kquery_spark.physical.prefetch import PrefetchRequest, prefetched_reads
from kquery_spark.physical.row_conditions import RowConditions
from kquery_spark.physical.split_coalescer import SplitCoalescer, SplitRead
from kquery_spark.physical.split_columns import (
    FilteredColumns,
    SplitColumns,
    evaluate_on_dictionaries,
    rows_of,
)
from kquery_spark.run_control import check_run, current_control
from kquery_spark.sources.base import Source, Split
from kquery_spark.types.batch import Batch
from kquery_spark.types.sizes import fixed_bytes, is_too_large, reserve_rows
from kquery_spark.types.vector import Flags, Int64s

if TYPE_CHECKING:
    from kquery_spark.physical.operators.base import Metrics

# A run-time filter comes before the scan's own conditions if the share of rows that it passes is at most this fraction
# of the share that the conditions pass.
_EARLY_SHARE = 0.5


class _RowFilter(NamedTuple):
    """A filter over decoded rows: the columns that it reads, and its function. A result of None keeps all rows."""

    columns: Sequence[str]
    flags_of: Callable[[Batch], Flags | None]


class FilteringReader:
    """Late materialization: decodes the filter columns, applies the filters, and decodes the rest for the survivors."""

    def __init__(
        self,
        source: Source,
        columns: Sequence[str],
        filters: Sequence[Expr],
        runtime: Sequence[RuntimeFilter],
        metrics: Metrics,
        batch_rows: int,
    ) -> None:
        self._source = source
        self._columns = columns
        self._metrics = metrics
        self._schema = pa.schema([source.schema.field(c) for c in columns])
        self._row_bytes = sum(fixed_bytes(field.type) for field in self._schema)
        # Cheap filters first: the expensive ones then probe fewer rows.
        self._runtime = sorted(runtime, key=lambda f: (not f.is_quick, len(f.columns)))
        self._conditions = RowConditions(filters)
        self._bounded_conditions: dict[tuple[str, int | None, int | None], RowConditions] = {}
        self._raises = any(map(can_raise, filters))
        # By column: the share of rows that passed its conditions in the last split where its dictionary decided them.
        self._passing_shares: dict[str, float] = {}
        # Step 3, all splits: the rows on which the remaining conditions were evaluated, and those that passed.
        self._own_seen = self._own_passed = 0
        self._last_read_had_rows = True  # True if the last read had at least as many passing rows as splits
        all_columns = [c for step in self._steps(self._conditions, self._runtime) for c in step]
        self._coalescer = SplitCoalescer(source, all_columns, self._row_bytes, batch_rows)

    def prefetch_request(self, split: Split) -> PrefetchRequest | None:
        """Return the columns and rows to prefetch for a split; None if statistics exclude all of its rows.

        If fewer rows than splits passed the filters in the last read, only the filter columns are prefetched.
        """
        runtime = [f for f in self._runtime if f.is_on]
        conditions = self._conditions_of(split)
        rows = self._possible_rows(split, conditions, runtime)
        if rows is not None and len(rows) == 0:
            return None
        static, keys, rest = self._steps(conditions, runtime)
        return PrefetchRequest([*static, *keys, *(rest if self._last_read_had_rows else ())], rows)

    def read_all(self, splits: Sequence[Split]) -> Generator[Batch, None, None]:
        """Yield batches with the scan's columns, in the order of the splits."""
        if splits and self._source.is_remote(splits[0]):
            reads = prefetched_reads(self._source, splits, self.prefetch_request, self._next_remote_read)
            with closing(reads):
                yield from self._read_each(reads)
        else:
            yield from self._read_each(self._local_reads(splits))

    def _read_each(self, reads: Iterable[SplitRead]) -> Iterator[Batch]:
        control = current_control()
        for singles, split, rows in reads:
            check_run()
            yield from self._read(split, rows) if len(singles) == 1 else self._read_coalesced(singles, split)
            if control is not None:
                control.count_splits(len(split.pieces) if self._source.divisible else 1)

    def _read_coalesced(self, singles: Sequence[Split], coalesced: Split) -> Iterator[Batch]:
        """Read coalesced splits together; if their strings exceed the 32-bit offsets of one array, read them one by one.

        This happens if strings are much longer than in the earlier splits, from which ``SplitCoalescer`` estimates sizes.
        """
        try:
            # All batches are read before the first one is yielded: after an error, no row may be yielded twice.
            batches = list(self._read(coalesced, None))
        except (BatchTooLarge, pa.ArrowException) as error:
            if not is_too_large(error):
                raise
        else:
            yield from batches
            return
        for split in singles:
            yield from self._read(split, None)

    def _local_reads(self, splits: Sequence[Split]) -> Iterator[SplitRead]:
        at = 0
        while at < len(splits):
            read = self._next_read(splits, at)
            at += len(read.singles)
            yield read

    def _next_remote_read(self, fetched: Sequence[Split]) -> SplitRead:
        """Return a read of the first of the splits that are being fetched, coalesced with those after it if possible.

        If few rows passed in the last read, splits are read alone. Otherwise one passing row would make the reader fetch the
        other columns of all coalesced splits.
        """
        return self._next_read(fetched if self._last_read_had_rows else fetched[:1], 0)

    def _next_read(self, splits: Sequence[Split], at: int) -> SplitRead:
        """Return a read of the split at a position, coalesced with those after it if possible.

        The split is read alone if statistics exclude some of its rows, or if a filter tightens while the scan reads.
        """
        split, count = splits[at], 1
        rows = self._rows_to_read(split)
        if rows is None and not any(f.is_on and f.tightens for f in self._runtime):
            split, count = self._coalescer.coalesce(splits, at, lambda s: self._rows_to_read(s) is None)
        return SplitRead(splits[at : at + count], split, rows)

    def _rows_to_read(self, split: Split) -> Int64s | None:
        """Return the rows of a split that statistics do not exclude (step 1); None for all rows."""
        conditions, runtime = self._conditions_of(split), [f for f in self._runtime if f.is_on]
        return self._possible_rows(split, conditions, runtime) if conditions.terms or runtime else None

    def _read(self, split: Split, rows: Int64s | None) -> Iterator[Batch]:
        """Yield the batches of one split. rows: the result of ``_rows_to_read``."""
        runtime = [f for f in self._runtime if f.is_on]
        conditions = self._conditions_of(split)
        reserve_rows(split.rows)
        if rows is not None:
            self._metrics.add("rows_ruled_out", split.rows - len(rows))
        if not conditions.terms and not runtime:
            reserve_rows(split.rows, self._row_bytes)
            for batch in self._source.read(split, self._columns):
                self._coalescer.observe_batch(batch)
                yield batch
        elif self._source.columnar:
            read = SplitColumns(self._source, split)
            passed = yield from self._read_in_steps(read, split, conditions, runtime, rows)
            if rows is None or len(rows):  # otherwise, statistics excluded the split, and no filter saw a row
                self._last_read_had_rows = passed >= len(split.pieces)
            self._coalescer.observe(split, read)
        else:
            yield from self._read_all_columns(split, conditions, runtime)

    def _conditions_of(self, split: Split) -> RowConditions:
        """Return the scan's conditions; for a split that is a key range of its file, also those of the range."""
        if split.bounds is None:
            return self._conditions
        conditions = self._bounded_conditions.get(split.bounds)
        if conditions is None:
            conditions = RowConditions(
                [*_range_conditions(self._source, *split.bounds), *self._conditions.terms]
            )
            self._bounded_conditions[split.bounds] = conditions
        return conditions

    def _read_in_steps(
        self,
        read: SplitColumns,
        split: Split,
        conditions: RowConditions,
        runtime: list[RuntimeFilter],
        rows: Int64s | None,
    ) -> Generator[Batch, None, int]:
        """Read a columnar source in the steps of the module docstring. Returns the number of rows that passed."""
        if self._source.addressable and not self._raises and (rows is None or len(rows)):
            conditions, rows = self._apply_dictionary_conditions(read, conditions, rows)
            runtime, rows = _apply_dictionary_runtime_filters(read, self._most_selective_first(runtime), rows)
        reserve_rows(split.rows if rows is None else len(rows), self._row_bytes)
        if rows is not None and len(rows) == 0:
            return 0
        states = read.initial_selection(rows)
        static, keys, rest = self._steps(conditions, runtime)
        present: set[str] = set()
        for columns, flags_of in self._row_filters(conditions, runtime, static, keys):
            added = [c for c in dict.fromkeys(columns) if c not in present]
            present.update(added)
            states = [s.where(flags_of(s.batch)) for s in read.add_columns(states, added)]
            if not any(s.rows for s in states):
                return 0
        # Request all remaining columns at once; those that were prefetched are not requested again.
        release = self._source.fetch(split, rest, states[0].selected if len(states) == 1 else None)
        try:
            states = read.add_columns(states, rest)
            for state in states:
                yield self._ordered(state.batch)
        finally:
            release()
        return sum(state.rows for state in states)

    def _row_filters(
        self, conditions: RowConditions, runtime: list[RuntimeFilter], static: list[str], keys: list[str]
    ) -> list[_RowFilter]:
        """Return the scan's own conditions and the run-time filters, in the order in which to apply them.

        Example: ``commit_date < receipt_date`` passes 63 % of the rows of TPC-H's ``lineitem``, and the filter of a join
        with the orders of three months 4 %. If the filter comes first, the two dates are decoded for only 4 % of the rows.
        """
        # If the source decodes all rows anyway, one read serves all run-time filters.
        at_once = None if self._source.addressable else keys
        early: list[_RowFilter] = []
        late: list[_RowFilter] = []
        for runtime_filter in self._most_selective_first(runtime):
            row_filter = _RowFilter(
                at_once or runtime_filter.columns, partial(_runtime_flags, runtime_filter)
            )
            (early if self._comes_early(runtime_filter) else late).append(row_filter)
        own = [_RowFilter(static, partial(self._own_flags, conditions))] if static else []
        return [*early, *own, *late]

    def _comes_early(self, runtime_filter: RuntimeFilter) -> bool:
        """Return whether a run-time filter is so selective that it should come before the scan's conditions.

        If a condition can raise, it must see the rows that the filter would drop.
        """
        if self._raises or not self._source.addressable or not self._own_seen or not runtime_filter.seen:
            return False
        if not runtime_filter.is_row_wise or not runtime_filter.is_quick:
            return False
        share, own_share = runtime_filter.passed / runtime_filter.seen, self._own_passed / self._own_seen
        return share <= _EARLY_SHARE * own_share

    def _own_flags(self, conditions: RowConditions, batch: Batch) -> Flags | None:
        """Evaluate the scan's conditions, and count the rows that pass."""
        flags = conditions.flags(batch)
        self._own_seen += batch.num_rows
        self._own_passed += batch.num_rows if flags is None else int(np.count_nonzero(flags))
        return flags

    def _most_selective_first(self, runtime: list[RuntimeFilter]) -> list[RuntimeFilter]:
        """Sort run-time filters by the share of rows that passed so far, so that later columns are decoded for fewer rows.

        Quick filters still come before the others. A filter that has not seen any rows yet is the first of its kind.
        """
        return sorted(runtime, key=lambda f: (not f.is_quick, f.passed / max(f.seen, 1)))

    def _steps(
        self, conditions: RowConditions, runtime: Sequence[RuntimeFilter]
    ) -> tuple[list[str], list[str], list[str]]:
        """Divide the columns into those of the conditions, further ones of the run-time filters, and all others."""
        needed = conditions.columns
        static = [c for c in self._source.schema.names if c in needed]
        keys = [c for c in dict.fromkeys(n for f in runtime for n in f.columns) if c not in needed]
        rest = [c for c in self._columns if c not in needed and c not in keys]
        return static, keys, rest

    def _apply_dictionary_conditions(
        self, read: SplitColumns, conditions: RowConditions, rows: Int64s | None
    ) -> tuple[RowConditions, Int64s | None]:
        """Apply the conditions that a dictionary can decide; returns the other conditions and the remaining rows.

        Columns whose conditions passed the smallest share of rows come first, so that later columns are decoded for few
        rows. The share is that of the last split that measured it; columns without a share come before all others.
        """
        decided = []
        by_column = conditions.by_column
        for name in sorted(by_column, key=lambda name: self._passing_shares.get(name, 0.0)):
            column = read.dictionary_column(name, rows) if read.is_worthwhile(name) else None
            if column is None:
                continue
            before = read.rows if rows is None else len(rows)
            field = self._source.schema.field(name)
            passing_values = by_column[name].passing_values(field, column)
            rows = rows_of([(column, passing_values)], rows)
            after = read.rows if rows is None else len(rows)
            self._passing_shares[name] = after / max(before, 1)
            decided.append(name)
            if after == 0:
                break
        return conditions.without(frozenset(decided)), rows

    def _possible_rows(
        self, split: Split, conditions: RowConditions, runtime: list[RuntimeFilter]
    ) -> Int64s | None:
        """Return the rows that statistics do not exclude; None for all rows."""
        source = self._source
        if not source.addressable:
            return None
        # A condition that can raise also has to see the rows that run-time filters would drop.
        late = (
            []
            if self._raises
            else [c for f in runtime for c in f.conditions(columns_of_source(source, f.columns))]
        )
        return possible_rows(source, split, conditions.terms, late)

    def _read_all_columns(
        self, split: Split, conditions: RowConditions, runtime: list[RuntimeFilter]
    ) -> Iterator[Batch]:
        """Read a source that decodes all of its columns at once, such as CSV."""
        static, keys, rest = self._steps(conditions, runtime)
        for batch in self._source.read(split, [*static, *keys, *rest]):
            state = FilteredColumns(batch).where(conditions.flags(batch))
            for runtime_filter in runtime:
                state = state.where(_runtime_flags(runtime_filter, state.batch))
            yield self._ordered(state.batch)

    def _ordered(self, batch: Batch) -> Batch:
        places = {n: i for i, n in enumerate(batch.schema.names)}
        return Batch(self._schema, tuple(batch.columns[places[n]] for n in self._columns), batch.num_rows)


def columns_of_source(source: Source, names: Sequence[str]) -> list[Column]:
    """Return the columns of a source with these names."""
    fields = [source.schema.field(name) for name in names]
    return [Column(field.name, field.type, field.nullable) for field in fields]


def _range_conditions(source: Source, name: str, low: int | None, high: int | None) -> list[Expr]:
    """Return the condition ``low <= column < high`` of a split that is a key range of its file."""
    (column,) = columns_of_source(source, [name])
    terms: list[Expr] = []
    if low is not None:
        terms.append(Call.of("gteq", column, Literal(low, column.dtype)))
    if high is not None:
        terms.append(Call.of("lt", column, Literal(high, column.dtype)))
    return terms


def _apply_dictionary_runtime_filters(
    read: SplitColumns, runtime: list[RuntimeFilter], rows: Int64s | None
) -> tuple[list[RuntimeFilter], Int64s | None]:
    """Apply the run-time filters that dictionaries can decide; returns the other filters and the remaining rows."""
    others = []
    for runtime_filter in runtime:
        places = (
            []
            if rows is not None and len(rows) == 0
            else evaluate_on_dictionaries(runtime_filter, read, rows)
        )
        if places is None:
            others.append(runtime_filter)
            continue
        seen = read.rows if rows is None else len(rows)
        rows = rows_of(places, rows)
        runtime_filter.count(seen, read.rows if rows is None else len(rows))
    return others, rows


def _runtime_flags(runtime_filter: RuntimeFilter, batch: Batch) -> Flags:
    keys = [batch.vector(batch.schema.get_field_index(c)) for c in runtime_filter.columns]
    return runtime_filter.mask(keys, batch.num_rows)
