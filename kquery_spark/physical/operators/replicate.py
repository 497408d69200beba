"""ReplicateExec: a build side that every task computes by itself, and that its worker process caches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from typing_extensions import override

from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.physical.operators.scan import ScanExec
from kquery_spark.types.batch import Batch


def _with_scan_ids(plan: PhysicalPlan, scan_ids: Iterator[int]) -> PhysicalPlan:
    """Return the plan with other scan ids, which are taken from ``scan_ids``."""
    if isinstance(plan, ScanExec):
        return replace(plan, scan_id=next(scan_ids))
    return plan.with_children([_with_scan_ids(c, scan_ids) for c in plan.children])


@dataclass(frozen=True)
class ReplicateExec(UnaryExec):
    """Outputs all rows of a small subplan in every task, as a broadcast would. The plan itself is the cache key."""

    child: PhysicalPlan

    @property
    def cache_key(self) -> object:
        """The key in the worker's cache. It is equal for equal subplans over unchanged files, in any place of any query."""
        return _with_scan_ids(self.child, count())

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        return self.child.run(task)
