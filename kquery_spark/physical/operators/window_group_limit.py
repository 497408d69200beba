"""WindowGroupLimitExec: returns the first rows of each group, and prunes the rows in memory from time to time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, SortKey
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.physical.windows import GroupLimit, window_keys
from kquery_spark.types.batch import Batch, concat

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

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.child.schema

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        held: list[Batch] = []  # after pruning, only the batch that remained
        rows = remaining = 0
        source = self.child.run(task)
        for batch in source:
            held.append(batch)
            rows += batch.num_rows
            if rows - remaining < max(_MIN_NEW_ROWS, _NEW_ROWS_PER_PRUNED_ROW * remaining):
                continue
            held = [self._prune(held)]
            remaining = held[0].num_rows
            if self._is_useless(rows, remaining):
                yield from held
                yield from source
                return
            rows = remaining
        if rows > remaining:
            held = [self._prune(held)]
        yield from held

    def _is_useless(self, rows: int, remaining: int) -> bool:
        """Return True if exchanging all rows costs less than pruning them, because the groups in this task are small."""
        return self.is_partial and rows >= _MIN_JUDGED_ROWS and remaining > _MAX_REMAINING_SHARE * rows

    def _prune(self, batches: list[Batch]) -> Batch:
        batch = concat(self.schema, batches)
        partition, order = window_keys(self.partition, self.order, batch)
        rows, _ = self.limit.first_rows(partition, order, batch.num_rows)
        return batch if len(rows) == batch.num_rows else batch.take(pa.array(np.sort(rows)))

    @override
    def label(self) -> str:
        stage = "partial, " if self.is_partial else ""
        return (
            f"WindowGroupLimitExec: {stage}{self.limit}, "
            f"partition=[{', '.join(map(str, self.partition))}], order=[{', '.join(map(str, self.order))}]"
        )
