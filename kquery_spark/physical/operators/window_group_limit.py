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
from kquery_spark.physical.windows import arrange
from kquery_spark.physical.windows.functions import rank_of
from kquery_spark.types.batch import Batch, concat
from kquery_spark.types.vector import Vector

_PRUNED_BATCH_ROWS = 131_072


@dataclass(frozen=True)
class WindowGroupLimitExec(UnaryExec):
    """Implements ``logical.WindowGroupLimit``: keeps the rows with ``function() <= limit``.

    A task can have only a part of a partition. It then keeps the rows that can be within the limit of the whole partition.
    """

    child: PhysicalPlan
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    function: str
    limit: int

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.child.schema

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        pruned: Batch | None = None
        waiting: list[Batch] = []
        rows = 0
        for batch in self.child.run(task):
            waiting.append(batch)
            rows += batch.num_rows
            # Pruning sorts the remaining rows again, so it waits for at least as many new rows.
            if rows >= max(_PRUNED_BATCH_ROWS, 0 if pruned is None else pruned.num_rows):
                pruned = self._pruned([pruned, *waiting] if pruned is not None else waiting)
                waiting, rows = [], 0
        if pruned is not None or waiting:
            yield self._pruned([pruned, *waiting] if pruned is not None else waiting)

    def _pruned(self, batches: list[Batch]) -> Batch:
        batch = concat(self.schema, batches)
        exprs = [*self.partition, *(k.expr for k in self.order)]
        vectors = [
            Vector(v.dtype, v.physical(batch.num_rows)) for v in Program(exprs, batch.schema).run(batch)
        ]
        order = list(zip(self.order, vectors[len(self.partition) :], strict=True))
        rows, segments = arrange(vectors[: len(self.partition)], order, batch.num_rows)
        chosen = rows[rank_of(self.function, segments) <= self.limit]
        return batch if len(chosen) == batch.num_rows else batch.take(pa.array(np.sort(chosen)))

    @override
    def label(self) -> str:
        return (
            f"WindowGroupLimitExec: {self.function} <= {self.limit}, "
            f"partition=[{', '.join(map(str, self.partition))}], order=[{', '.join(map(str, self.order))}]"
        )
