"""FilterExec: keep rows, by the cheapest of four ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.expr import Expr
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.runtime_filter import RuntimeFilter
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Vector

_INDEX_SELECTIVITY = 0.2


@dataclass(frozen=True)
class FilterExec(PhysicalPlan):
    """Rows for which the condition is true."""

    child: PhysicalPlan
    condition: Expr

    @property
    def schema(self) -> pa.Schema:
        """See PhysicalPlan."""
        return self.child.schema

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """See PhysicalPlan."""
        return (self.child,)

    def with_children(self, children: Sequence[PhysicalPlan]) -> PhysicalPlan:
        """See PhysicalPlan."""
        return FilterExec(children[0], self.condition)

    def accept_filter(self, task: TaskContext, found: RuntimeFilter) -> None:
        """See PhysicalPlan."""
        self.child.accept_filter(task, found)

    def execute(self, task: TaskContext) -> Iterator[Batch]:
        """See PhysicalPlan."""
        program = Program([self.condition], self.child.schema)
        for batch in self.child.run(task):
            yield keep(batch, program.run(batch)[0])

    def label(self) -> str:
        """See PhysicalPlan."""
        return f"FilterExec: {self.condition}"


def keep(batch: Batch, condition: Vector) -> Batch:
    """The rows where the condition is true: none, all, by index when few, by mask otherwise."""
    if condition.is_scalar:
        true = condition.data.is_valid and condition.data.as_py()
        return batch if true else batch.slice(0, 0)
    mask = condition.data
    count = mask.true_count
    if count == batch.num_rows:
        return batch
    if count == 0:
        return batch.slice(0, 0)
    if count < batch.num_rows * _INDEX_SELECTIVITY:
        flags = (pc.fill_null(mask, False) if mask.null_count else mask).to_numpy(zero_copy_only=False)
        return batch.take(pa.array(np.flatnonzero(flags)))
    return batch.filter(mask)
