"""Plans of exactly one row."""

from __future__ import annotations

from kquery_spark.logical.aggregate import Aggregate
from kquery_spark.logical.join import Join, JoinKind
from kquery_spark.logical.plan import LogicalPlan


def always_one_row(plan: LogicalPlan) -> bool:
    """Whether the plan gives exactly one row, whatever the data."""
    if isinstance(plan, Aggregate):
        return not plan.keys
    pairs_rows = (
        isinstance(plan, Join) and plan.kind in (JoinKind.LEFT, JoinKind.INNER) and plan.compares_nothing
    )
    return (plan.preserves_rows or pairs_rows) and all(map(always_one_row, plan.children))
