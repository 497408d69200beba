"""ReplicateExec: a build side that every task computes for itself and its worker keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa
from typing_extensions import override

from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.physical.operators.scan import ScanExec
from kquery_spark.types.batch import Batch


def _renumbered(plan: PhysicalPlan, numbers: Iterator[int]) -> PhysicalPlan:
    """The plan with its scans numbered from 0."""
    if isinstance(plan, ScanExec):
        return replace(plan, scan_id=next(numbers))
    return plan.with_children([_renumbered(c, numbers) for c in plan.children])


@dataclass(frozen=True)
class ReplicateExec(UnaryExec):
    """The whole output of a cheap sub-plan in every task; the plan itself is the cache key."""

    child: PhysicalPlan

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.child.schema

    @property
    def cache_key(self) -> object:
        """Equal for equal sub-plans over unchanged files, wherever in a query they are."""
        return _renumbered(self.child, count())

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        return self.child.run(task)
