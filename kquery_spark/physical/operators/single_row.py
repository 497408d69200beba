"""SingleRowExec: checks that a scalar subquery returns at most one row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import override

from kquery_spark.errors import ExecutionError
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class SingleRowExec(UnaryExec):
    """Outputs the single row of the child, or no row. Raises an ExecutionError at a second row. It runs in one task."""

    child: PhysicalPlan

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        seen = 0
        for batch in self.child.run(task):
            seen += batch.num_rows
            if seen > 1:
                raise ExecutionError(
                    "SCALAR_SUBQUERY_TOO_MANY_ROWS",
                    "More than one row returned by a subquery used as an expression.",
                )
            yield batch
