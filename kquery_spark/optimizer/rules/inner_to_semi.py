"""Inner joins of which one side only decides whether rows are there become semi joins."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from kquery_spark.expr.properties import is_pure
from kquery_spark.logical import Join, JoinKind, LogicalPlan
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.plan import with_new_children
from kquery_spark.optimizer.statistics import Estimator

_MIN_ROW_EXPANSION = (
    2.0  # rows of the inner join for each row of its larger side, from which on repeating them costs
)


def inner_to_semi(plan: LogicalPlan) -> LogicalPlan:
    """``x SEMI JOIN (SELECT a.k FROM a JOIN b)`` becomes ``x SEMI JOIN (SELECT a.k FROM a SEMI JOIN b)``.

    Below DISTINCT, ``min`` and ``max``, and on the right of semi and anti joins, it does not matter how often a row is
    there; so a join need not repeat the rows of one side for each row of the other when nothing else reads the other.
    Joins that are not expected to make many rows of few stay, as either side of them can be looked up in the other.
    """
    return _Conversion().rewrite(plan, plan.column_names, duplicates_are_irrelevant=False)


class _Conversion:
    def __init__(self) -> None:
        self._estimator = Estimator()

    def rewrite(self, plan: LogicalPlan, needed: Set[str], duplicates_are_irrelevant: bool) -> LogicalPlan:
        """``needed``: the columns read above; ``duplicates_are_irrelevant``: equal rows may as well be one."""
        if isinstance(plan, Join) and duplicates_are_irrelevant:
            plan = self._as_semi(plan, needed)
        required = plan.required_columns(needed)
        ignored = plan.is_duplicate_insensitive(duplicates_are_irrelevant)
        return with_new_children(plan, list(map(self.rewrite, plan.children, required, ignored)))

    def _as_semi(self, join: Join, needed: Set[str]) -> Join:
        """The semi join of an inner join of which only one side's columns are read; else the join itself."""
        if join.kind is not JoinKind.INNER or not self._expands(join):
            return join
        if not all(map(is_pure, join.expressions)):
            return join
        if needed <= join.left.column_names:
            return replace(join, kind=JoinKind.SEMI)
        if needed <= join.right.column_names:
            keys = tuple(JoinKey(k.right, k.left, k.null_safe) for k in join.keys)
            return replace(join, left=join.right, right=join.left, kind=JoinKind.SEMI, keys=keys)
        return join

    def _expands(self, join: Join) -> bool:
        joined, left, right = (self._estimator.estimate(p).rows for p in (join, join.left, join.right))
        return joined > _MIN_ROW_EXPANSION * max(left, right)
