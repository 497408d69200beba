"""ScanExec: reads the splits of a source through ``FilteringReader``."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.physical.dynamic_filters.runtime_filter import RuntimeFilter
from kquery_spark.physical.dynamic_filters.top_k import FirstRowsFilter
from kquery_spark.physical.filtering_reader import FilteringReader, columns_of_source
from kquery_spark.physical.operators.base import Metrics, PhysicalPlan, TaskContext
from kquery_spark.sources.base import Source, Split
from kquery_spark.sources.prefetch.read_counts import read_counts
from kquery_spark.types.batch import Batch

BYTES_READ = "bytes_read"
"""Metric of a scan: stored (compressed) bytes read from files."""


@dataclass(frozen=True)
class ScanExec(PhysicalPlan):
    """Scans a source and applies the filters that were pushed into it.

    splits: the splits that every task reads; None if the task context assigns them by ``scan_id``.
    whole: one task must read all splits, because the planner relies on it (for example for a broadcast build side).
    shares: task ``i`` must read exactly ``shares[i]``, because the planner relies on it for a co-located join.
    files_pruned: number of files that partition pruning removed from the source; only shown by ``label``.
    """

    scan_id: int
    table: str
    source: Source
    columns: tuple[str, ...]
    filters: tuple[Expr, ...] = ()
    splits: tuple[Split, ...] | None = None
    whole: bool = False
    shares: tuple[tuple[Split, ...], ...] = ()
    files_pruned: int = 0

    @property
    @override
    def schema(self) -> pa.Schema:
        return pa.schema([self.source.schema.field(c) for c in self.columns])

    @override
    def accept_filter(self, task: TaskContext, runtime_filter: RuntimeFilter) -> None:
        task.runtime_filters.setdefault(self.scan_id, []).append(runtime_filter)

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        splits = task.splits[self.scan_id] if self.splits is None else self.splits
        if self.source.divisible:
            splits = [replace(split, pieces=(piece,)) for split in splits for piece in split.pieces]
        runtime = task.runtime_filters.get(self.scan_id, [])
        source = self.source if task.config.compiled else self.source.without_kernels()
        metrics = task.metrics_of(self)
        reader = FilteringReader(source, self.columns, self.filters, runtime, metrics, task.config.batch_rows)
        in_order = _order_for_top_k(self.source, splits, runtime)
        yield from _counting_reads(reader.read_all(in_order), metrics)

    def piece_count(self, splits: Sequence[Split]) -> int:
        """Return the number of reads of a task that has these splits."""
        own = splits if self.splits is None else self.splits
        return sum(len(split.pieces) for split in own) if self.source.divisible else len(own)

    @override
    def label(self) -> str:
        text = f"ScanExec: {self.table}; columns=[{', '.join(self.columns)}]"
        if self.filters:
            text += f"; filters=[{', '.join(map(str, self.filters))}]"
        if self.files_pruned:
            text += f"; files pruned={self.files_pruned}"
        return text if self.splits is None else f"{text}; splits={len(self.splits)}"


def _counting_reads(batches: Generator[Batch, None, None], metrics: Metrics) -> Iterator[Batch]:
    """Yield the batches and add the bytes that this thread reads for them to the metrics."""
    with closing(batches):
        while True:
            before = read_counts()
            batch = next(batches, None)
            read = read_counts().since(before)
            if read.reads:
                metrics.add(BYTES_READ, read.nbytes)
                metrics.add("reads", read.reads)
            if batch is None:
                return
            yield batch


def _order_for_top_k(
    source: Source, splits: Sequence[Split], runtime: Sequence[RuntimeFilter]
) -> Sequence[Split]:
    """Order the splits for a top-k filter: those that may hold the first rows come first and tighten its bound early."""
    for runtime_filter in runtime:
        if isinstance(runtime_filter, FirstRowsFilter):
            (column,) = columns_of_source(source, runtime_filter.columns)
            order = runtime_filter.reading_order(
                column, [source.ranges(split, column.name) for split in splits]
            )
            return splits if order is None else [splits[i] for i in order]
    return splits
