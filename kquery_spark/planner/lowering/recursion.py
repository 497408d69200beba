"""Lowers recursive queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.errors import Unsupported
from kquery_spark.logical import Input, LastRound, Recursion, walk_plan
from kquery_spark.physical.operators import LastRoundExec, RecursionExec, ReplicateExec
from kquery_spark.planner.distribution import DistributedPlan, Distribution
from kquery_spark.planner.lowering.registry import lowers

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner


@lowers(Recursion)
def lower_recursion(planner: Planner, plan: Recursion) -> DistributedPlan:
    """Run all rounds in one task, because an exchange runs only once per query. The task reads all inputs by itself."""
    if any(isinstance(node, Input) or node.calls_python for node in walk_plan(plan)):
        raise Unsupported("the rounds of a recursive query can only read files and the query's own rows")
    whole = planner.in_one_task()
    anchor, step = whole.lower(plan.anchor).plan, whole.lower(plan.step).plan
    recursion = RecursionExec(anchor, step, plan.key, plan.limits, plan.schema)
    return DistributedPlan(recursion if planner.one_task else ReplicateExec(recursion), Distribution.SINGLE)


@lowers(LastRound)
def lower_last_round(planner: Planner, plan: LastRound) -> DistributedPlan:
    """Read the rows of the previous round, in the task that runs the recursion."""
    return DistributedPlan(LastRoundExec(plan.key, plan.schema), Distribution.SINGLE)
