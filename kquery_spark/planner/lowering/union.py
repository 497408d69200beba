"""Lowering of unions and set operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.logical import SetOperation, Union
from kquery_spark.physical.operators import ExchangeExec, PhysicalPlan, ReadExec, UnionExec
from kquery_spark.planner.distribution import DistributedPlan, Distribution, single_or_split
from kquery_spark.planner.lowering.registry import lowers
from kquery_spark.planner.set_operations import lower_set_operation

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner


@lowers(Union)
def lower_union(planner: Planner, plan: Union) -> DistributedPlan:
    """In every task if all inputs only scan files, else in one: tasks of scans and of stages are not the same."""
    inputs = [planner.lower(one) for one in plan.inputs]
    if not _can_share_tasks(inputs):
        sizes = map(planner.nbytes, plan.inputs)
        inputs = [planner.to_one_task(one, size) for one, size in zip(inputs, sizes, strict=True)]
    union = UnionExec(tuple(one.plan for one in inputs), plan.schema)
    return DistributedPlan(union, single_or_split(*(one.distribution for one in inputs)))


def _can_share_tasks(inputs: list[DistributedPlan]) -> bool:
    """Whether the same tasks can run all inputs: a single one, or several that only scan."""
    if all(one.distribution is Distribution.SINGLE for one in inputs):
        return True
    return not any(one.distribution is Distribution.SINGLE or _reads_stage(one.plan) for one in inputs)


def _reads_stage(plan: PhysicalPlan) -> bool:
    """Whether rows of another stage, or of Spark, come into the plan."""
    return isinstance(plan, ReadExec | ExchangeExec) or any(map(_reads_stage, plan.children))


@lowers(SetOperation)
def lower_set(planner: Planner, plan: SetOperation) -> DistributedPlan:
    """As joins and aggregates."""
    return planner.lower(lower_set_operation(plan))
