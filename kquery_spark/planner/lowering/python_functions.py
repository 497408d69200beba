"""Lowers the nodes that call Python UDFs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.expr import Expr, SortKey
from kquery_spark.logical import EvalPython, GroupPython, LogicalPlan, MapPython, TablePython, WindowPython
from kquery_spark.physical.grouping.key_values import check_key_type
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

_ONE_TASK_ROWS = 1000  # with more rows, groups are spread over all cores, however few their bytes are


@lowers(EvalPython)
def lower_eval_python(planner: Planner, plan: EvalPython) -> DistributedPlan:
    """Call the functions in every task."""
    child = planner.lower(plan.child)
    return child.with_plan(EvalPythonExec(child.plan, plan.args, plan.calls, plan.child_columns, plan.schema))


@lowers(MapPython)
def lower_map_python(planner: Planner, plan: MapPython) -> DistributedPlan:
    """Call the function in every task. It can return any rows, so their distribution is unknown."""
    child = planner.lower(plan.child)
    mapped = MapPythonExec(child.plan, plan.args, plan.calls, plan.schema)
    return DistributedPlan(mapped, single_or_split(child.distribution))


@lowers(GroupPython)
def lower_group_python(planner: Planner, plan: GroupPython) -> DistributedPlan:
    """Call the functions in tasks in which the rows of each group are complete and consecutive."""
    keys = tuple(key.expr for key in plan.keys)
    child = lower_clustered(planner, plan.child, keys)
    grouped = GroupPythonExec(child.plan, plan.keys, plan.args, plan.calls, plan.aggregates, plan.schema)
    if not plan.aggregates:
        return DistributedPlan(grouped, single_or_split(child.distribution))
    columns = {key.expr: key.column for key in plan.keys}
    return child.with_renamed_keys(grouped, columns.get)


@lowers(WindowPython)
def lower_window_python(planner: Planner, plan: WindowPython) -> DistributedPlan:
    """Call the functions in tasks that have complete partitions, in the window's order."""
    order = (*map(SortKey, plan.partition), *plan.order)
    for key in order:
        check_key_type(key.expr.dtype)
    child = _in_one_place(planner, plan.child, plan.partition)
    if plan.order or (order and not child.plan.clusters_by(frozenset(plan.partition))):
        child = child.with_plan(SortExec(child.plan, order))
    window = plan.partition, plan.order, plan.frames
    return child.with_plan(
        WindowPythonExec(child.plan, *window, plan.args, plan.calls, plan.child_columns, plan.schema)
    )


@lowers(TablePython)
def lower_table_python(planner: Planner, plan: TablePython) -> DistributedPlan:
    """Call the function in every task if it works row by row, otherwise in tasks that have complete, sorted partitions."""
    keys = plan.partition
    child = planner.lower(plan.child) if keys is None else _in_one_place(planner, plan.child, keys)
    if plan.order:
        for key in plan.order:
            check_key_type(key.expr.dtype)
        child = child.with_plan(SortExec(child.plan, plan.order))
    called = TablePythonExec(
        child.plan, plan.args, plan.calls, keys is None, bool(keys), plan.child_columns, plan.schema
    )
    if keys is None:
        return child.with_plan(called)
    return DistributedPlan(called, single_or_split(child.distribution))


def lower_clustered(planner: Planner, plan: LogicalPlan, keys: tuple[Expr, ...]) -> DistributedPlan:
    """Lower the plan so that rows with equal keys are consecutive in one task."""
    for key in keys:
        check_key_type(key.dtype)
    child = _in_one_place(planner, plan, keys)
    if keys and not child.plan.clusters_by(frozenset(keys)):
        child = child.with_plan(SortExec(child.plan, tuple(map(SortKey, keys))))
    return child


def _in_one_place(planner: Planner, plan: LogicalPlan, keys: tuple[Expr, ...]) -> DistributedPlan:
    """Lower the plan so that rows with equal keys are in one task."""
    child = planner.lower(plan)
    if child.is_partitioned_by(keys):
        return child
    nbytes = planner.nbytes(plan)
    if not keys:
        return planner.to_one_task(child, nbytes)
    count = tasks_of_groups(planner, nbytes, planner.estimator.estimate(plan).rows)
    return planner.exchange(child, Partitioning(keys, count), nbytes)


def tasks_of_groups(planner: Planner, nbytes: float, rows: float) -> int:
    """Return the number of tasks for groups: at least one per core, because a function can take any time for a group."""
    count = planner.reduce_tasks(nbytes)
    return planner.config.parallelism if count == 1 and rows > _ONE_TASK_ROWS else count
