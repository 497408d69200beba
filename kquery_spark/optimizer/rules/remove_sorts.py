"""Removes sorts that no output or operator depends on."""

from __future__ import annotations

from kquery_spark.logical import LogicalPlan, Sort
from kquery_spark.logical.plan import with_new_children


def remove_sorts(plan: LogicalPlan) -> LogicalPlan:
    """``Aggregate`` over ``Sort`` needs no order, nor do the sides of a join or another sort.

    An aggregate that depends on order (first, collect_list, sums of floats) keeps the sort below it, as in Spark's
    EliminateSorts, and a limit always does.
    """
    return _visit(plan, order_matters=True)


def _visit(plan: LogicalPlan, order_matters: bool) -> LogicalPlan:
    """The plan without sorts whose order cannot be seen in the result of the query."""
    if isinstance(plan, Sort) and not order_matters:
        return _visit(plan.child, order_matters=False)
    order_below = plan.is_order_sensitive(order_matters)
    return with_new_children(plan, [_visit(child, order_below) for child in plan.children])
