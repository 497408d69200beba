"""Recognizes plans that return exactly one row."""

from __future__ import annotations

from kquery_spark.logical.aggregate import Aggregate
from kquery_spark.logical.join import Join, JoinKind
from kquery_spark.logical.plan import LogicalPlan


def always_one_row(plan: LogicalPlan) -> bool:
    """True if the plan returns exactly one row for any data: an aggregate without keys, and what preserves its row count."""
    if isinstance(plan, Aggregate):
        return not plan.keys
    # The cross join of one row with one row has one row.
    is_cross_join = (
        isinstance(plan, Join) and plan.kind in (JoinKind.LEFT, JoinKind.INNER) and plan.matches_all_pairs
    )
    return (plan.preserves_rows or is_cross_join) and all(map(always_one_row, plan.children))
