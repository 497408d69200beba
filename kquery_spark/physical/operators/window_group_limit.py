"""WindowGroupLimitExec: keeps the first rows of each group, pruning after each number of batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, SortKey
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.physical.windows import GroupLimit
from kquery_spark.types.batch import Batch, concat
from kquery_spark.types.vector import Vector

_PRUNED_BATCH_ROWS = 262_144
_NEW_ROWS_PER_HELD_ROW = (
    2  # pruning sorts the remaining rows again, so it waits for more new rows than it holds
)
# A task with a part of each group stops pruning when that many rows were looked at, and nearly all of them were kept.
_MIN_JUDGED_ROWS = 1 << 19
_MAX_KEPT_SHARE = 0.8


@dataclass(frozen=True)
class WindowGroupLimitExec(UnaryExec):
    """Implements ``logical.WindowGroupLimit`` where no WindowExec does.

    is_partial: the task has only a part of each group, and another operator limits the groups again after the exchange. It
    keeps the rows that can be within the limit of the whole group, and may keep others.
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
        pruned: Batch | None = None
        waiting: list[Batch] = []
        rows = 0
        source = self.child.run(task)
        for batch in source:
            waiting.append(batch)
            rows += batch.num_rows
            held = 0 if pruned is None else pruned.num_rows
            if rows >= max(_PRUNED_BATCH_ROWS, _NEW_ROWS_PER_HELD_ROW * held):
                pruned = self._pruned([pruned, *waiting] if pruned is not None else waiting)
                if self._is_useless(held + rows, pruned.num_rows):
                    yield pruned
                    yield from source
                    return
                waiting, rows = [], 0
        if pruned is not None or waiting:
            yield self._pruned([pruned, *waiting] if pruned is not None else waiting)

    def _is_useless(self, rows: int, kept: int) -> bool:
        """Return True if rows are better exchanged than pruned, because the groups in this task are small."""
        return self.is_partial and rows >= _MIN_JUDGED_ROWS and kept > _MAX_KEPT_SHARE * rows

    def _pruned(self, batches: list[Batch]) -> Batch:
        batch = concat(self.schema, batches)
        exprs = [*self.partition, *(k.expr for k in self.order)]
        vectors = [
            Vector(v.dtype, v.physical(batch.num_rows)) for v in Program(exprs, batch.schema).run(batch)
        ]
        order = list(zip(self.order, vectors[len(self.partition) :], strict=True))
        rows, _ = self.limit.first_rows(vectors[: len(self.partition)], order, batch.num_rows)
        return batch if len(rows) == batch.num_rows else batch.take(pa.array(np.sort(rows)))

    @override
    def label(self) -> str:
        stage = "partial, " if self.is_partial else ""
        return (
            f"WindowGroupLimitExec: {stage}{self.limit}, "
            f"partition=[{', '.join(map(str, self.partition))}], order=[{', '.join(map(str, self.order))}]"
        )
