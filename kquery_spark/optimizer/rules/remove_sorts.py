"""Removes sorts that no output or operator depends on."""

from __future__ import annotations

from kquery_spark.logical import LogicalPlan, Sort
from kquery_spark.logical.plan import over


def remove_sorts(plan: LogicalPlan) -> LogicalPlan:
    """``Aggregate`` over ``Sort`` needs no order, nor do the sides of a join or another sort.

    An aggregate that depends on order (first, collect_list, sums of floats) keeps the sort below it, as in Spark's
    EliminateSorts, and a limit always does.
    """
    return _visit(plan, order_is_seen=True)


def _visit(plan: LogicalPlan, order_is_seen: bool) -> LogicalPlan:
    """The plan without sorts whose order cannot be seen in the result of the query."""
    if isinstance(plan, Sort) and not order_is_seen:
        return _visit(plan.child, order_is_seen=False)
    order_below = plan.sees_order(order_is_seen)
    return over(plan, [_visit(child, order_below) for child in plan.children])
