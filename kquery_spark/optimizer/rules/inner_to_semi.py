"""Turns inner joins into semi joins if one side only decides which rows of the other side are in the result."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from kquery_spark.expr.properties import is_pure
from kquery_spark.logical import Join, JoinKind, LogicalPlan
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.plan import with_new_children
from kquery_spark.optimizer.statistics import Estimator

# Only joins that are expected to return more rows than this, per row of their larger side, are changed.
_MIN_ROW_EXPANSION = 2.0


def inner_to_semi(plan: LogicalPlan) -> LogicalPlan:
    """Turn ``x SEMI JOIN (SELECT a.k FROM a JOIN b ON ...)`` into ``x SEMI JOIN (SELECT a.k FROM a SEMI JOIN b ON ...)``.

    An inner join outputs a row of ``a`` once for each matching row of ``b``. Below DISTINCT, ``min`` and ``max``, and on
    the right side of semi and anti joins, these duplicates have no effect. If nothing reads columns of ``b`` either, a semi
    join gives the same result. Joins that do not multiply rows are left alone, because an inner join can build either of
    its sides.
    """
    return _Conversion().rewrite(plan, plan.column_names, duplicates_are_irrelevant=False)


class _Conversion:
    """One run of the rule over a plan, which caches the estimates."""

    def __init__(self) -> None:
        self._estimator = Estimator()

    def rewrite(self, plan: LogicalPlan, needed: Set[str], duplicates_are_irrelevant: bool) -> LogicalPlan:
        """Rewrite top-down. ``needed``: the columns read above; ``duplicates_are_irrelevant``: as in LogicalPlan."""
        if isinstance(plan, Join) and duplicates_are_irrelevant:
            plan = self._as_semi(plan, needed)
        required = plan.required_columns(needed)
        insensitive = plan.is_duplicate_insensitive(duplicates_are_irrelevant)
        return with_new_children(plan, list(map(self.rewrite, plan.children, required, insensitive)))

    def _as_semi(self, join: Join, needed: Set[str]) -> Join:
        """Return a semi join if only columns of one side are needed, otherwise the join itself."""
        if join.kind is not JoinKind.INNER or not self._expands(join):
            return join
        if not all(map(is_pure, join.expressions)):
            return join
        if needed <= join.left.column_names:
            return replace(join, kind=JoinKind.SEMI)
        if needed <= join.right.column_names:
            # A semi join outputs its left side, so the sides are swapped.
            keys = tuple(JoinKey(k.right, k.left, k.null_safe) for k in join.keys)
            return replace(join, left=join.right, right=join.left, kind=JoinKind.SEMI, keys=keys)
        return join

    def _expands(self, join: Join) -> bool:
        joined, left, right = (self._estimator.estimate(p).rows for p in (join, join.left, join.right))
        return joined > _MIN_ROW_EXPANSION * max(left, right)
