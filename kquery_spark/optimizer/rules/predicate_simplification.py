"""Conditions in a form that other rules can use."""

from __future__ import annotations

from kquery_spark.logical import LogicalPlan
from kquery_spark.optimizer.normal_conditions import with_normal_conditions


def predicate_simplification(plan: LogicalPlan) -> LogicalPlan:
    """``(#a = #b AND #x) OR (#a = #b AND #y)`` becomes ``#a = #b AND (#x OR #y)``.

    Also: NOT over a comparison is the opposite comparison, NOT NOT x is x, repeated terms count once, an OR of equalities
    with one column is an IN, and a filter that is always true is gone. Terms that can raise keep their places.
    """
    return with_normal_conditions(plan)
