"""Lowering of windows: rows of a partition meet in one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.logical import Window, WindowGroupLimit
from kquery_spark.physical.keys import check_key_type
from kquery_spark.physical.operators import WindowExec, WindowGroupLimitExec
from kquery_spark.planner.distribution import DistributedPlan, Distribution
from kquery_spark.planner.lowering.registry import lowers

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner


@lowers(Window)
def lower_window(planner: Planner, plan: Window) -> DistributedPlan:
    """Where the rows of each partition are."""
    _check_keys(plan)
    child = planner.lower(plan.child)
    if not _is_grouped(planner, plan, child):
        child = planner.exchange_by(child, plan.partition, planner.nbytes(plan.child))
    return child.over(WindowExec(child.plan, plan.calls, plan.partition, plan.order))


@lowers(WindowGroupLimit)
def lower_window_group_limit(planner: Planner, plan: WindowGroupLimit) -> DistributedPlan:
    """In every task first, then where the rows of each group are."""
    _check_keys(plan)
    child = planner.lower(plan.child)
    if not _is_grouped(planner, plan, child):
        first = child.over(_limited(child, plan))
        child = planner.exchange_by(first, plan.partition, planner.nbytes(plan.child))
    return child.over(_limited(child, plan))


def _is_grouped(planner: Planner, plan: Window | WindowGroupLimit, child: DistributedPlan) -> bool:
    """Whether the rows of each partition are in one task."""
    if child.distribution is Distribution.SHARED:
        return planner.joins.groups_together(plan.child, plan.partition)
    return child.groups_by(plan.partition)


def _limited(child: DistributedPlan, plan: WindowGroupLimit) -> WindowGroupLimitExec:
    return WindowGroupLimitExec(child.plan, plan.partition, plan.order, plan.function, plan.limit)


def _check_keys(plan: Window | WindowGroupLimit) -> None:
    for expr in (*plan.partition, *(k.expr for k in plan.order)):
        check_key_type(expr.dtype)
