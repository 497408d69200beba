"""Moves semi and anti joins above inner joins that return few rows."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.expr.properties import is_pure
from kquery_spark.logical import Join, JoinKind, LogicalPlan, Projection, transform_plan
from kquery_spark.logical.projection import with_columns_of
from kquery_spark.optimizer.statistics import Estimator

# The inner join goes first if it is expected to return at most this share of the rows that the semi join would return.
_MAX_INNER_ROWS_PER_SEMI_ROW = 0.5


def late_semi_joins(plan: LogicalPlan) -> LogicalPlan:
    """Turn ``(lines SEMI JOIN others) JOIN few`` into ``(lines JOIN few) SEMI JOIN others``.

    A semi join decides about each row of ``lines`` alone, so both orders give the same rows. If the inner join keeps 1,000
    of 6,000,000 lines, the semi join has to look up only these. Joins with expressions that can raise are left alone.
    """
    estimator = Estimator()
    return transform_plan(plan, lambda node: _lift_semi_joins(node, estimator))


def _lift_semi_joins(plan: LogicalPlan, estimator: Estimator) -> LogicalPlan:
    """Swap an inner join with the semi join on one of its sides if that is correct and leaves fewer rows for the latter."""
    if not (isinstance(plan, Join) and plan.kind is JoinKind.INNER and _is_pure_join(plan)):
        return plan
    for index, side in enumerate(plan.children):
        # The alternative: ``inner`` joins the left side of the semi join directly, and the semi join is applied above it.
        semi = _find_semi_join(side)
        inner = None if semi is None else _inner_join_below(plan, index, semi)
        if semi is None or inner is None:
            continue
        if estimator.estimate(inner).rows <= _MAX_INNER_ROWS_PER_SEMI_ROW * estimator.estimate(semi).rows:
            return with_columns_of(replace(semi, left=_lift_semi_joins(inner, estimator)), plan)
    return plan


def _inner_join_below(join: Join, index: int, semi: Join) -> LogicalPlan | None:
    """Return the inner join with the left side of ``semi`` as its side ``index``; None if the swap is not possible."""
    if not _is_pure_join(semi):
        return None
    sides = list(join.children)
    sides[index] = semi.left
    names = [name for plan in (*sides, semi.right) for name in plan.schema.names]
    # A projection between the joins may have dropped a column whose name another input has as well.
    return join.with_children(sides) if len(set(names)) == len(names) else None


def _find_semi_join(plan: LogicalPlan) -> Join | None:
    """Return the semi or anti join at the top of a side, below projections that only drop columns; None without one."""
    if isinstance(plan, Projection) and plan.only_drops:
        return _find_semi_join(plan.child)
    return plan if isinstance(plan, Join) and plan.kind in (JoinKind.SEMI, JoinKind.ANTI) else None


def _is_pure_join(plan: Join) -> bool:
    """True if the join's expressions may be evaluated for any rows."""
    return all(map(is_pure, plan.expressions))
