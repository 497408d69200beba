"""WindowGroupLimitExec: returns the first rows of each group, and prunes the rows in memory from time to time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, SortKey
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.physical.spill import MAX_LEVEL, HashPartitions, SpillDirectory, hashed_bytes
from kquery_spark.physical.windows import GroupLimit, window_keys
from kquery_spark.types.batch import Batch, concat, drain, max_buffered_bytes, trim_dictionaries

_MIN_NEW_ROWS = 262_144
_NEW_ROWS_PER_PRUNED_ROW = 2
"""Pruning sorts the remaining rows again, so it waits for this number of new rows per row that remained the last time."""

# A partial operator stops pruning if at least this number of rows were pruned together, and more than this share remains.
_MIN_JUDGED_ROWS = 1 << 19
_MAX_REMAINING_SHARE = 0.8


@dataclass(frozen=True)
class WindowGroupLimitExec(UnaryExec):
    """Implements ``logical.WindowGroupLimit``, unless the WindowExec above it applies the limit itself.

    is_partial: the task has only a part of each group, and another operator limits the groups again after the exchange. So
    this operator may also return rows that are beyond the limit of the whole group.
    """

    child: PhysicalPlan
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    limit: GroupLimit
    is_partial: bool = False

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        return self._limited(self.child.run(task), task, 0)

    def _limited(self, source: Iterator[Batch], task: TaskContext, level: int) -> Iterator[Batch]:
        """Yield the rows within the limit. level: that of the hash partition on disk that ``source`` reads; 0 for all rows.

        If the rows that remain after pruning exceed half of the memory budget, an operator with PARTITION BY that is not
        partial writes the rows to hash partitions on disk, and limits the partitions one by one. Any other operator passes
        on these and all further rows. This is correct, because the Filter above the Window compares the ranks again.
        """
        held: list[Batch] = []  # after pruning, only the batch that remained
        rows = remaining = nbytes = remaining_bytes = 0
        limit = max_buffered_bytes(self.schema, task.config.memory_bytes)
        for batch in source:
            held.append(batch)
            rows += batch.num_rows
            nbytes += hashed_bytes(batch.nbytes, batch.num_rows)
            new_rows = max(_MIN_NEW_ROWS, _NEW_ROWS_PER_PRUNED_ROW * remaining)
            is_large = nbytes > max(limit, 2 * remaining_bytes) and level < MAX_LEVEL
            if rows - remaining < new_rows and not is_large:
                continue
            held = [self._prune(held)]
            remaining = held[0].num_rows
            nbytes = remaining_bytes = hashed_bytes(held[0].nbytes, remaining)
            exceeds_budget = is_large and 2 * nbytes > limit
            if exceeds_budget and not self.is_partial and self.partition:
                yield from self._limited_partitions(chain(drain(held), source), task, level)
                return
            # Without PARTITION BY, the rows cannot be divided: all rows that remain may tie for the last rank.
            if exceeds_budget or (self.is_partial and self._is_useless(rows, remaining)):
                yield from drain(held)
                yield from source
                return
            rows = remaining
        if rows > remaining:
            held = [self._prune(held)]
        yield from held

    def _limited_partitions(self, source: Iterator[Batch], task: TaskContext, level: int) -> Iterator[Batch]:
        """Write all rows to hash partitions of the window partition's keys, and yield the rows within the limit of each."""
        program = Program(list(self.partition), self.schema)
        with SpillDirectory(task.metrics_of(self)) as spill:
            partitions = HashPartitions(spill, self.schema, program.run, level)
            partitions.add(source)
            for file in partitions.non_empty():
                yield from self._limited(file.read(), task, level + 1)

    def _is_useless(self, rows: int, remaining: int) -> bool:
        """Return True if exchanging all rows costs less than pruning them, because the groups in this task are small."""
        return rows >= _MIN_JUDGED_ROWS and remaining > _MAX_REMAINING_SHARE * rows

    def _prune(self, batches: list[Batch]) -> Batch:
        batch = concat(self.schema, batches)
        partition, order = window_keys(self.partition, self.order, batch)
        rows, _ = self.limit.first_rows(partition, order, batch.num_rows)
        if len(rows) == batch.num_rows:
            return batch
        return trim_dictionaries(batch.take(pa.array(np.sort(rows))))

    @override
    def label(self) -> str:
        stage = "partial, " if self.is_partial else ""
        return (
            f"WindowGroupLimitExec: {stage}{self.limit}, "
            f"partition=[{', '.join(map(str, self.partition))}], order=[{', '.join(map(str, self.order))}]"
        )
