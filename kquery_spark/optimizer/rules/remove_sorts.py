"""Removes sorts whose order cannot affect the result."""

from __future__ import annotations

from kquery_spark.logical import LogicalPlan, Sort
from kquery_spark.logical.plan import with_new_children


def remove_sorts(plan: LogicalPlan) -> LogicalPlan:
    """Remove a ``Sort`` below an ``Aggregate``, a join or another sort, which do not depend on the order of their rows.

    A sort remains below an aggregate that depends on the order (first, collect_list, sums of floats), as in Spark's
    EliminateSorts, and below every limit.
    """
    return _visit(plan, order_matters=True)


def _visit(plan: LogicalPlan, order_matters: bool) -> LogicalPlan:
    """Rewrite top-down. order_matters: whether the order of the plan's rows can change the result of the query."""
    if isinstance(plan, Sort) and not order_matters:
        return _visit(plan.child, order_matters=False)
    order_below = plan.is_order_sensitive(order_matters)
    return with_new_children(plan, [_visit(child, order_below) for child in plan.children])
