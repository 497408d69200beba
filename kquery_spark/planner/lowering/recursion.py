"""Lowering of recursive queries."""

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
    """One task runs all rounds, for no exchange runs more than once; it reads by itself what the rounds need."""
    if any(isinstance(node, Input) or node.calls_python for node in walk_plan(plan)):
        raise Unsupported("the rounds of a recursive query only read files and rows of the query's own")
    whole = planner.in_one_task()
    anchor, step = whole.lower(plan.anchor).plan, whole.lower(plan.step).plan
    recursion = RecursionExec(anchor, step, plan.key, plan.limits, plan.schema)
    return DistributedPlan(recursion if planner.one_task else ReplicateExec(recursion), Distribution.SINGLE)


@lowers(LastRound)
def lower_last_round(planner: Planner, plan: LastRound) -> DistributedPlan:
    """Where the rounds run."""
    return DistributedPlan(LastRoundExec(plan.key, plan.schema), Distribution.SINGLE)
