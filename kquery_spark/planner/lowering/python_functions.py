"""Lowering of calls of Python functions of Spark's users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.expr import Expr, SortKey
from kquery_spark.logical import EvalPython, GroupPython, LogicalPlan, MapPython, TablePython, WindowPython
from kquery_spark.physical.keys import check_key_type
from kquery_spark.physical.operators import (
    EvalPythonExec,
    GroupPythonExec,
    MapPythonExec,
    Partitioning,
    SortExec,
    TablePythonExec,
    WindowPythonExec,
)
from kquery_spark.planner.distribution import DistributedPlan, single_or_split
from kquery_spark.planner.lowering.registry import lowers

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner

_ONE_TASK_ROWS = 1000  # so few are one task's, however long a function takes for them


@lowers(EvalPython)
def lower_eval_python(planner: Planner, plan: EvalPython) -> DistributedPlan:
    """In every task."""
    child = planner.lower(plan.child)
    return child.over(EvalPythonExec(child.plan, plan.args, plan.calls, plan.child_columns, plan.schema))


@lowers(MapPython)
def lower_map_python(planner: Planner, plan: MapPython) -> DistributedPlan:
    """In every task; nothing is known of the rows that come out."""
    child = planner.lower(plan.child)
    mapped = MapPythonExec(child.plan, plan.args, plan.calls, plan.schema)
    return DistributedPlan(mapped, single_or_split(child.distribution))


@lowers(GroupPython)
def lower_group_python(planner: Planner, plan: GroupPython) -> DistributedPlan:
    """Where the rows of each group are, and follow each other."""
    keys = tuple(key.expr for key in plan.keys)
    child = clustered(planner, plan.child, keys)
    grouped = GroupPythonExec(child.plan, plan.keys, plan.args, plan.calls, plan.aggregates, plan.schema)
    if not plan.aggregates:
        return DistributedPlan(grouped, single_or_split(child.distribution))
    columns = {key.expr: key.column for key in plan.keys}
    return child.renamed(grouped, columns.get)


@lowers(WindowPython)
def lower_window_python(planner: Planner, plan: WindowPython) -> DistributedPlan:
    """Where the rows of each partition are, in their order."""
    order = (*map(SortKey, plan.partition), *plan.order)
    for key in order:
        check_key_type(key.expr.dtype)
    child = _in_one_place(planner, plan.child, plan.partition)
    if plan.order or (order and not child.plan.clusters_by(frozenset(plan.partition))):
        child = child.over(SortExec(child.plan, order))
    over = plan.partition, plan.order, plan.frames
    return child.over(
        WindowPythonExec(child.plan, *over, plan.args, plan.calls, plan.child_columns, plan.schema)
    )


@lowers(TablePython)
def lower_table_python(planner: Planner, plan: TablePython) -> DistributedPlan:
    """In every task, or where the rows of each partition are, in their order."""
    keys = plan.partition
    child = planner.lower(plan.child) if keys is None else _in_one_place(planner, plan.child, keys)
    if plan.order:
        for key in plan.order:
            check_key_type(key.expr.dtype)
        child = child.over(SortExec(child.plan, plan.order))
    called = TablePythonExec(
        child.plan, plan.args, plan.calls, keys is None, bool(keys), plan.child_columns, plan.schema
    )
    if keys is None:
        return child.over(called)
    return DistributedPlan(called, single_or_split(child.distribution))


def clustered(planner: Planner, plan: LogicalPlan, keys: tuple[Expr, ...]) -> DistributedPlan:
    """A plan's rows with those of equal keys in one task, one after the other."""
    for key in keys:
        check_key_type(key.dtype)
    child = _in_one_place(planner, plan, keys)
    if keys and not child.plan.clusters_by(frozenset(keys)):
        child = child.over(SortExec(child.plan, tuple(map(SortKey, keys))))
    return child


def _in_one_place(planner: Planner, plan: LogicalPlan, keys: tuple[Expr, ...]) -> DistributedPlan:
    """A plan's rows with those of equal keys in one task."""
    child = planner.lower(plan)
    if child.groups_by(keys):
        return child
    nbytes = planner.nbytes(plan)
    if not keys:
        return planner.to_one_task(child, nbytes)
    count = tasks_of_groups(planner, nbytes, planner.estimator.estimate(plan).rows)
    return planner.exchange(child, Partitioning(keys, count), nbytes)


def tasks_of_groups(planner: Planner, nbytes: float, rows: float) -> int:
    """At least as many tasks as run at once: a function may take any time for a group."""
    count = planner.reduce_tasks(nbytes)
    return planner.config.parallelism if count == 1 and rows > _ONE_TASK_ROWS else count
