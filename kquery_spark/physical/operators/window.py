"""WindowExec: computes window functions, and outputs the rows of each partition together, in the window's order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import Expr, Named, SortKey, WindowCall
from kquery_spark.logical.window import format_window
from kquery_spark.physical.clusters import with_group_starts
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec, clustered_keys
from kquery_spark.physical.sorting.external_sort import sorted_batches
from kquery_spark.physical.spill import SpillDirectory
from kquery_spark.physical.windows import (
    GroupLimit,
    StreamedPartition,
    WindowEvaluator,
    arrange,
    max_window_result_bytes,
    streamable,
    window_keys,
    with_results,
)
from kquery_spark.types.batch import Batch, concat, drain, max_buffered_bytes, pick

_ARRANGED_ROW_BYTES = 32  # memory of the position, the partition, the peers and the result of a row


@dataclass(frozen=True)
class WindowExec(UnaryExec):
    """Implements ``logical.Window``. All rows of a partition must be in this task.

    1. If all rows fit into the memory budget, they are sorted and computed at once.
    2. Otherwise an external sort orders them by partition and sort keys, and they are computed partition by partition.
    3. A single partition that is too large is computed in pieces (``StreamedPartition``), if all calls are ``streamable``.
       If one is not, the whole partition is held in memory.

    limit: only the rows within this limit are output; None for all rows. With a limit, every call is a ranking, and one of
    them is the ranking of the limit.
    """

    child: PhysicalPlan
    calls: tuple[Named, ...]
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    limit: GroupLimit | None = None

    @property
    @override
    def schema(self) -> pa.Schema:
        return pa.schema([*self.child.schema, *(c.field for c in self.calls)])

    @override
    def clusters_by(self, keys: frozenset[Expr]) -> bool:
        return keys in clustered_keys(self.partition, [k.expr for k in self.order])

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        buffered: list[Batch] = []
        size = rows = 0
        limit = max_buffered_bytes(self.child.schema, task.config.memory_bytes)
        source = self.child.run(task)
        for batch in source:
            buffered.append(batch)
            size += batch.nbytes
            rows += batch.num_rows
            if _working_bytes(size, rows) > limit and self.child.schema.names:
                break
        else:
            output = self._output(concat(self.child.schema, buffered), task.config)
            buffered.clear()  # the rows are concatenated already, although the generator has not started
            yield from output
            return
        with SpillDirectory(task.metrics_of(self)) as spill:
            all_batches = chain(drain(buffered), source)
            yield from self._execute_sorted(all_batches, size // max(1, rows), spill, task)

    def _execute_sorted(
        self, source: Iterator[Batch], row_bytes: int, spill: SpillDirectory, task: TaskContext
    ) -> Iterator[Batch]:
        """Sort the rows externally and yield the output: small partitions are computed together, large ones in pieces.

        ``held`` has the rows of the last partition so far, which may continue in the next batch. A batch in which another
        partition begins completes it, and all complete partitions are computed together. If ``held`` exceeds ``max_bytes``,
        its partition becomes ``large``, which receives all rows until the next partition begins.
        """
        config, schema = task.config, self.child.schema
        max_bytes = self._max_partition_bytes(config)
        keys = (*map(SortKey, self.partition), *self.order)
        batches = sorted_batches(source, schema, keys, config, spill)
        held: list[Batch] = []
        size = 0
        large: StreamedPartition | None = None
        for batch, starts in with_group_starts(batches, Program(list(self.partition), schema)):
            if large is not None:
                end = next(iter(starts), batch.num_rows)
                large.add(batch.slice(0, end))
                if not starts:
                    continue
                yield from map(self._within_limit, large.run())
                large = None
                batch, starts = batch.slice(end), [s - end for s in starts]
            if starts and (starts[-1] or held):
                complete = concat(schema, [*held, batch.slice(0, starts[-1])])
                yield from self._output(complete, config)
                held, size, batch = [], 0, batch.slice(starts[-1])
            held.append(batch)
            size += batch.nbytes
            if size > max_bytes:
                large = self._streamed_partition(drain(held), row_bytes, spill, config)
                size = 0
        if large is not None:
            yield from map(self._within_limit, large.run())
        yield from self._output(concat(schema, held), config)

    def _max_partition_bytes(self, config: EngineConfig) -> float:
        """Return the size above which a partition is computed in pieces on disk; infinite if a call does not allow this."""
        can_stream = all(isinstance(c.expr, WindowCall) and streamable(c.expr) for c in self.calls)
        return max_buffered_bytes(self.child.schema, _min_streamed_bytes(config)) if can_stream else math.inf

    def _streamed_partition(
        self, batches: Iterator[Batch], row_bytes: int, spill: SpillDirectory, config: EngineConfig
    ) -> StreamedPartition:
        """Return a large partition on disk that begins with these batches."""
        piece_rows = min(config.batch_rows, max(256, _min_streamed_bytes(config) // max(1, row_bytes) // 4))
        schemas = self.child.schema, self.schema
        max_bytes = max_window_result_bytes(config.memory_bytes)
        partition = StreamedPartition(self.calls, self.order, schemas, spill, piece_rows, max_bytes)
        for batch in batches:
            partition.add(batch)
        return partition

    def _output(self, batch: Batch, config: EngineConfig) -> Iterator[Batch]:
        """Yield the output for the rows of one or more complete partitions."""
        if not batch.num_rows:
            return
        arrange_rows = arrange if self.limit is None else self.limit.first_rows
        rows, segments = arrange_rows(*window_keys(self.partition, self.order, batch), batch.num_rows)
        n = len(rows)  # with a limit, fewer rows than the batch has
        arranged = batch.take(pa.array(rows))
        del batch
        arguments = [a for c in self.calls for a in c.expr.children]
        values = iter(Program([*(k.expr for k in self.order), *arguments], arranged.schema).run(arranged))
        windowed = WindowEvaluator(segments, [(k, next(values).filled(n)) for k in self.order])
        results = []
        for named in self.calls:
            call = named.expr
            assert isinstance(call, WindowCall)
            results.append(windowed.compute(call, [next(values) for _ in call.args]))
        max_bytes = max_window_result_bytes(config.memory_bytes)
        yield from with_results(arranged, results, self.schema, config.batch_rows, max_bytes)

    def _within_limit(self, batch: Batch) -> Batch:
        """Drop the rows beyond the limit of a partition that was computed in pieces."""
        if self.limit is None:
            return batch
        function = self.limit.function
        (ranking, *_) = (
            c.name for c in self.calls if isinstance(c.expr, WindowCall) and c.expr.function == function
        )
        ranks = batch.columns[batch.schema.get_field_index(ranking)].to_numpy()
        return pick(batch, np.flatnonzero(ranks <= self.limit.rows))

    @override
    def label(self) -> str:
        limit = "" if self.limit is None else f"{self.limit}, "
        return f"WindowExec: {limit}{format_window(self.calls, self.partition, self.order)}"


def _working_bytes(nbytes: int, rows: int) -> int:
    """Return the memory for computing windows over rows of ``nbytes``: the rows, an arranged copy, and the results."""
    return 2 * nbytes + _ARRANGED_ROW_BYTES * rows


def _min_streamed_bytes(config: EngineConfig) -> int:
    """Return the size from which computing a partition in pieces on disk costs less than holding it in memory."""
    return config.memory_bytes // 4
