"""Lowering of calls of Python functions of Spark's users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.expr import Expr, SortKey
from kquery_spark.logical import EvalPython, GroupPython, LogicalPlan, MapPython
from kquery_spark.physical.keys import check_key_type
from kquery_spark.physical.operators import (
    EvalPythonExec,
    GroupPythonExec,
    MapPythonExec,
    Partitioning,
    SortExec,
)
from kquery_spark.planner.distribution import DistributedPlan, Distribution
from kquery_spark.planner.lowering.registry import lowers

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner

_ONE_TASK_ROWS = 1000  # so few are one task's, however long a function takes for them


@lowers(EvalPython)
def lower_eval_python(planner: Planner, plan: EvalPython) -> DistributedPlan:
    """In every task."""
    child = planner.lower(plan.child)
    return child.over(
        EvalPythonExec(child.plan, plan.args, plan.calls, plan.batch_rows, plan.kept, plan.schema, plan.code)
    )


@lowers(MapPython)
def lower_map_python(planner: Planner, plan: MapPython) -> DistributedPlan:
    """In every task; nothing is known of the rows that come out."""
    child = planner.lower(plan.child)
    mapped = MapPythonExec(child.plan, plan.args, plan.call, plan.batch_rows, plan.schema, plan.code)
    return DistributedPlan(mapped, single_or_split(child))


@lowers(GroupPython)
def lower_group_python(planner: Planner, plan: GroupPython) -> DistributedPlan:
    """Where the rows of each group are, and follow each other."""
    keys = tuple(key.expr for key in plan.keys)
    child = clustered(planner, plan.child, keys)
    grouped = GroupPythonExec(
        child.plan,
        plan.keys,
        plan.args,
        plan.calls,
        plan.batch_rows,
        plan.aggregates,
        plan.schema,
        plan.code,
    )
    if not plan.aggregates:
        return DistributedPlan(grouped, single_or_split(child))
    columns = {key.expr: key.column for key in plan.keys}
    return child.renamed(grouped, columns.get)


def clustered(planner: Planner, plan: LogicalPlan, keys: tuple[Expr, ...]) -> DistributedPlan:
    """A plan's rows with those of equal keys in one task, one after the other."""
    for key in keys:
        check_key_type(key.dtype)
    child = planner.lower(plan)
    if not child.groups_by(keys):
        child = _exchanged(planner, plan, child, keys)
    if keys and not child.plan.clusters_by(frozenset(keys)):
        child = child.over(SortExec(child.plan, tuple(map(SortKey, keys))))
    return child


def _exchanged(
    planner: Planner, plan: LogicalPlan, child: DistributedPlan, keys: tuple[Expr, ...]
) -> DistributedPlan:
    """By key into at least as many tasks as run at once: a function may take any time for a group."""
    nbytes = planner.nbytes(plan)
    if not keys:
        return planner.to_one_task(child, nbytes)
    count = planner.reduce_tasks(nbytes)
    if count == 1 and planner.estimator.estimate(plan).rows > _ONE_TASK_ROWS:
        count = planner.config.parallelism
    return planner.exchange(child, Partitioning(keys, count), nbytes)


def single_or_split(child: DistributedPlan) -> Distribution:
    """All rows in one task if they are so below; anywhere otherwise."""
    return Distribution.SINGLE if child.distribution is Distribution.SINGLE else Distribution.SPLIT
