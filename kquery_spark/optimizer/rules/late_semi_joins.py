"""Inner joins that leave few rows come before semi and anti joins."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.expr import Column, Named
from kquery_spark.expr.properties import can_raise, is_deterministic
from kquery_spark.logical import Join, JoinKind, LogicalPlan, Projection
from kquery_spark.optimizer.statistics import Estimator

_FEW = 0.5  # rows that an inner join may leave for each one that the semi join would, to come first


def late_semi_joins(plan: LogicalPlan) -> LogicalPlan:
    """``(lines SEMI JOIN others) JOIN few`` becomes ``(lines JOIN few) SEMI JOIN others``.

    A row of ``lines`` stays or goes whatever it is joined with. Conditions that can raise keep their place.
    """
    return _Lifting().visit(plan)


class _Lifting:
    def __init__(self) -> None:
        self._estimator = Estimator()

    def visit(self, plan: LogicalPlan) -> LogicalPlan:
        children = [self.visit(c) for c in plan.children]
        if any(a is not b for a, b in zip(children, plan.children, strict=True)):
            plan = plan.with_children(children)
        return self._lifted(plan) if isinstance(plan, Join) and plan.kind is JoinKind.INNER else plan

    def _lifted(self, plan: Join) -> LogicalPlan:
        """The join below its sides' semi joins, where that is right and leaves fewer rows to them."""
        for side in ("left", "right"):
            semi = _semi_below(getattr(plan, side))
            if semi is None:
                continue
            away = plan.right if side == "left" else plan.left
            names = [*semi.left.schema.names, *away.schema.names]
            if len({*names, *semi.right.schema.names}) < len(names) + len(semi.right.schema.names):
                continue
            inner = replace(plan, left=semi.left) if side == "left" else replace(plan, right=semi.left)
            if not _free(plan) or not _free(semi):
                continue
            if self._estimator.estimate(inner).rows <= _FEW * self._estimator.estimate(semi).rows:
                return _same_columns(replace(semi, left=self._lifted(inner)), plan)
        return plan


def _semi_below(plan: LogicalPlan) -> Join | None:
    """The semi or anti join that a side is, under projections that only leave columns out."""
    if isinstance(plan, Projection) and all(
        isinstance(e.expr, Column) and e.expr.name == e.name for e in plan.exprs
    ):
        return _semi_below(plan.child)
    return plan if isinstance(plan, Join) and plan.kind in (JoinKind.SEMI, JoinKind.ANTI) else None


def _free(plan: Join) -> bool:
    """Whether it does not matter which rows the join's expressions see."""
    return all(is_deterministic(e) and not can_raise(e) for e in plan.expressions)


def _same_columns(plan: LogicalPlan, original: LogicalPlan) -> LogicalPlan:
    names = original.schema.names
    if plan.schema.names == names:
        return plan
    return Projection(plan, tuple(Named(plan.column(n), n) for n in names))
