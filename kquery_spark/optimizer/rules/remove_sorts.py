"""Sorting that nobody can see is left out."""

from __future__ import annotations

from kquery_spark.expr import AggregateCall
from kquery_spark.logical import Aggregate, Filter, Join, LogicalPlan, Projection, Sort, Union
from kquery_spark.logical.plan import over
from kquery_spark.types import names as t


def remove_sorts(plan: LogicalPlan) -> LogicalPlan:
    """``Aggregate`` over ``Sort`` needs no order, nor do the sides of a join or another sort.

    An aggregate that depends on order (first, collect_list, sums of floats) keeps the sort below it, as in Spark's
    EliminateSorts, and a limit always does.
    """
    return _visit(plan, ordered=True)


def _visit(plan: LogicalPlan, ordered: bool) -> LogicalPlan:
    """``ordered``: whether the order of the node's rows can be seen."""
    if isinstance(plan, Sort) and not ordered:
        return _visit(plan.child, False)
    match plan:
        case Sort():
            below = [False]
        case Aggregate():
            below = [any(map(_sees_order, plan.calls))]
        case Filter() | Projection() | Union():
            below = [ordered] * len(plan.children)
        case Join():
            below = [False, False]
        case _:
            below = [True] * len(plan.children)
    return over(plan, [_visit(c, o) for c, o in zip(plan.children, below, strict=True)])


def _sees_order(call: AggregateCall) -> bool:
    """Whether the result may be another one where the rows come in another order."""
    if call.entry.ordered:
        return True
    rounds = call.function != "count" and not call.entry.duplicate_free
    return rounds and any(t.is_fractional(a.dtype) for a in call.args)
