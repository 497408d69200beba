"""Lowers unions and set operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.logical import SetOperation, Union
from kquery_spark.physical.operators import ExchangeExec, PhysicalPlan, ReadExec, UnionExec
from kquery_spark.planner.distribution import DistributedPlan, Distribution, single_or_split, stage_leaves
from kquery_spark.planner.lowering.registry import lowers
from kquery_spark.planner.set_operations import lower_set_operation

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner


@lowers(Union)
def lower_union(planner: Planner, plan: Union) -> DistributedPlan:
    """Concatenate the inputs in every task if all of them only scan files, otherwise in one task.

    A stage has a single list of tasks. The splits of several scans can be divided among these, but the tasks of an exchange
    are determined by its partitioning, which another exchange or a scan does not share.
    """
    inputs = [planner.lower(plan_input) for plan_input in plan.inputs]
    if not _can_share_tasks(inputs):
        sizes = map(planner.nbytes, plan.inputs)
        inputs = [planner.to_one_task(child, size) for child, size in zip(inputs, sizes, strict=True)]
    union = UnionExec(tuple(child.plan for child in inputs), plan.schema)
    return DistributedPlan(union, single_or_split(*(child.distribution for child in inputs)))


def _can_share_tasks(inputs: list[DistributedPlan]) -> bool:
    """True if the same tasks can run all inputs: all are in a single task, or all only scan files."""
    if all(child.distribution is Distribution.SINGLE for child in inputs):
        return True
    return not any(child.distribution is Distribution.SINGLE or _reads_stage(child.plan) for child in inputs)


def _reads_stage(plan: PhysicalPlan) -> bool:
    """True if the plan reads rows of another stage or of Spark."""
    return any(isinstance(leaf, ReadExec | ExchangeExec) for leaf in stage_leaves(plan))


@lowers(SetOperation)
def lower_set(planner: Planner, plan: SetOperation) -> DistributedPlan:
    """Rewrite the set operation as joins and aggregates, and lower these."""
    return planner.lower(lower_set_operation(plan))
