"""Plans of exactly one row."""

from __future__ import annotations

from kquery_spark.logical.aggregate import Aggregate
from kquery_spark.logical.join import Join, JoinKind
from kquery_spark.logical.plan import LogicalPlan
from kquery_spark.logical.projection import Projection
from kquery_spark.logical.sort import Sort


def always_one_row(plan: LogicalPlan) -> bool:
    """Whether the plan gives exactly one row, whatever the data."""
    match plan:
        case Aggregate():
            return not plan.keys
        case Projection() | Sort():
            return always_one_row(plan.child)
        case Join(kind=JoinKind.LEFT | JoinKind.INNER) if plan.compares_nothing:
            return all(map(always_one_row, plan.children))
    return False
