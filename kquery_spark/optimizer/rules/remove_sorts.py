"""Removes sorts whose order cannot affect the result."""

from __future__ import annotations

from kquery_spark.expr.properties import is_pure
from kquery_spark.logical import Aggregate, Filter, Join, LogicalPlan, Projection, Sort, walk_plan
from kquery_spark.logical.plan import with_new_children


def remove_sorts(plan: LogicalPlan) -> LogicalPlan:
    """Remove a ``Sort`` below an ``Aggregate``, a join or another sort, which do not depend on the order of their rows.

    A sort remains below an aggregate that depends on the order (first, collect_list, sums of floats), as in Spark's
    EliminateSorts, and below every limit. Spark removes a sort only if just projections and filters are between it and
    the other node, so a sort by a key that can raise remains below all other nodes, such as a union.
    """
    return _visit(plan, order_matters=True, seen_by_spark=False)


def _visit(plan: LogicalPlan, order_matters: bool, seen_by_spark: bool) -> LogicalPlan:
    """Rewrite top-down.

    order_matters: whether the order of the plan's rows can change the result of the query. seen_by_spark: whether only
    projections and filters are between the plan and an aggregate, a join or a sort.
    """
    if isinstance(plan, Sort) and not order_matters and (seen_by_spark or _cannot_raise(plan)):
        return _visit(plan.child, order_matters=False, seen_by_spark=seen_by_spark)
    order_below = plan.is_order_sensitive(order_matters)
    seen = isinstance(plan, Aggregate | Join | Sort) or (
        seen_by_spark and isinstance(plan, Projection | Filter)
    )
    return with_new_children(plan, [_visit(child, order_below, seen) for child in plan.children])


def _cannot_raise(plan: LogicalPlan) -> bool:
    """True if neither the node nor a node below it has an expression that can raise.

    A key may be a column that any node below computes. Without the sort, the column would be pruned and the error lost.
    """
    return all(is_pure(expr) for node in walk_plan(plan) for expr in node.expressions)
