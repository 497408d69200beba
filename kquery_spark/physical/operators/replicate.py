"""ReplicateExec: a build side that every task computes for itself and its worker keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class ReplicateExec(PhysicalPlan):
    """The whole output of a cheap sub-plan in every task; the plan itself is the cache key."""

    child: PhysicalPlan

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
        return ReplicateExec(children[0])

    @property
    def cache_key(self) -> object:
        """Equal for equal sub-plans over unchanged files."""
        return self.child

    def execute(self, task: TaskContext) -> Iterator[Batch]:
        """See PhysicalPlan."""
        return self.child.run(task)
