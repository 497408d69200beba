"""LimitExec: outputs the first rows, and stops pulling batches when it has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class LimitExec(UnaryExec):
    """Skips ``offset`` rows of this task and outputs at most ``count`` rows (None: all)."""

    child: PhysicalPlan
    count: int | None
    offset: int = 0

    @override
    def clusters_by(self, keys: frozenset[Expr]) -> bool:
        return self.child.clusters_by(keys)

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        skip, left = self.offset, self.count
        if left == 0:
            return
        for batch in self.child.run(task):
            if skip >= batch.num_rows:
                skip -= batch.num_rows
                continue
            part = batch.slice(skip, left)
            skip = 0
            yield part
            if left is not None:
                left -= part.num_rows
                if left == 0:
                    return

    @override
    def label(self) -> str:
        return f"LimitExec: {'all' if self.count is None else self.count}" + (
            f", offset={self.offset}" if self.offset else ""
        )
