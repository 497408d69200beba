"""Inner joins that leave few rows come before semi and anti joins."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.expr.properties import is_pure
from kquery_spark.logical import Join, JoinKind, LogicalPlan, Projection, transform_plan
from kquery_spark.logical.projection import same_columns
from kquery_spark.optimizer.statistics import Estimator

_MAX_INNER_ROWS_PER_SEMI_ROW = (
    0.5  # rows that an inner join may leave for each one that the semi join would, to come first
)


def late_semi_joins(plan: LogicalPlan) -> LogicalPlan:
    """``(lines SEMI JOIN others) JOIN few`` becomes ``(lines JOIN few) SEMI JOIN others``.

    A row of ``lines`` stays or goes whatever it is joined with. Conditions that can raise keep their place.
    """
    estimator = Estimator()
    return transform_plan(plan, lambda node: _lifted(node, estimator))


def _lifted(plan: LogicalPlan, estimator: Estimator) -> LogicalPlan:
    """An inner join below its sides' semi joins, where that is right and leaves fewer rows to them."""
    if not (isinstance(plan, Join) and plan.kind is JoinKind.INNER and _is_free(plan)):
        return plan
    for index, side in enumerate(plan.children):
        semi = _semi_below(side)
        inner = None if semi is None else _below_semi(plan, index, semi)
        if semi is None or inner is None:
            continue
        if estimator.estimate(inner).rows <= _MAX_INNER_ROWS_PER_SEMI_ROW * estimator.estimate(semi).rows:
            return same_columns(replace(semi, left=_lifted(inner, estimator)), plan)
    return plan


def _below_semi(join: Join, index: int, semi: Join) -> LogicalPlan | None:
    """The inner join with the semi join's left side in place of the semi join; None if that is not the same."""
    if not _is_free(semi):
        return None
    sides = list(join.children)
    sides[index] = semi.left
    names = [name for one in (*sides, semi.right) for name in one.schema.names]
    # a projection in between may have dropped a column that another input has too
    return join.with_children(sides) if len(set(names)) == len(names) else None


def _semi_below(plan: LogicalPlan) -> Join | None:
    """The semi or anti join that a side is, under projections that only leave columns out."""
    if isinstance(plan, Projection) and plan.only_drops:
        return _semi_below(plan.child)
    return plan if isinstance(plan, Join) and plan.kind in (JoinKind.SEMI, JoinKind.ANTI) else None


def _is_free(plan: Join) -> bool:
    """Whether it does not matter which rows the join's expressions see."""
    return all(map(is_pure, plan.expressions))
