"""Lowers window functions, which need all rows of a partition in one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.expr import WindowCall
from kquery_spark.logical import Window, WindowGroupLimit
from kquery_spark.physical.grouping.key_values import check_key_type
from kquery_spark.physical.operators import WindowExec, WindowGroupLimitExec
from kquery_spark.physical.windows import GroupLimit
from kquery_spark.planner.distribution import DistributedPlan, Distribution
from kquery_spark.planner.lowering.registry import lowers

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner


@lowers(Window)
def lower_window(planner: Planner, plan: Window) -> DistributedPlan:
    """Compute the window in tasks that have complete partitions.

    A group limit directly below the window becomes part of the WindowExec. If rows are exchanged, a partial limit also drops
    rows before the exchange.
    """
    _check_keys(plan)
    limit = _limit_below(plan)
    node = plan if limit is None else limit
    child = planner.lower(node.child)
    if not _is_grouped(planner, node, child):
        if limit is not None:
            child = child.with_plan(_group_limit(child, limit, is_partial=True))
        child = planner.exchange_by(child, plan.partition, planner.nbytes(node.child))
    group_limit = None if limit is None else GroupLimit(limit.function, limit.limit)
    return child.with_plan(WindowExec(child.plan, plan.calls, plan.partition, plan.order, group_limit))


def _limit_below(plan: Window) -> WindowGroupLimit | None:
    """Return the limit directly below a window that computes its ranking and only rankings; None if there is none."""
    limit = plan.child
    if not isinstance(limit, WindowGroupLimit):
        return None
    if (limit.partition, limit.order) != (plan.partition, plan.order):
        return None
    rankings = [c.expr.function for c in plan.calls if isinstance(c.expr, WindowCall) and c.expr.ranks_rows]
    return limit if len(rankings) == len(plan.calls) and limit.function in rankings else None


@lowers(WindowGroupLimit)
def lower_window_group_limit(planner: Planner, plan: WindowGroupLimit) -> DistributedPlan:
    """Limit the groups within each task, so that fewer rows are exchanged, and then the complete groups."""
    _check_keys(plan)
    child = planner.lower(plan.child)
    if not _is_grouped(planner, plan, child):
        first = child.with_plan(_group_limit(child, plan, is_partial=True))
        child = planner.exchange_by(first, plan.partition, planner.nbytes(plan.child))
    return child.with_plan(_group_limit(child, plan))


def _is_grouped(planner: Planner, plan: Window | WindowGroupLimit, child: DistributedPlan) -> bool:
    """True if all rows of each partition are already in one task."""
    if child.distribution is Distribution.SHARED:
        return planner.joins.groups_together(plan.child, plan.partition)
    return child.is_partitioned_by(plan.partition)


def _group_limit(
    child: DistributedPlan, plan: WindowGroupLimit, *, is_partial: bool = False
) -> WindowGroupLimitExec:
    limit = GroupLimit(plan.function, plan.limit)
    return WindowGroupLimitExec(child.plan, plan.partition, plan.order, limit, is_partial)


def _check_keys(plan: Window | WindowGroupLimit) -> None:
    for expr in (*plan.partition, *(k.expr for k in plan.order)):
        check_key_type(expr.dtype)
