"""Limits the groups below a window function whose rank is filtered, as Spark's rule InferWindowGroupLimit does."""

from __future__ import annotations

from kquery_spark.expr import Call, Column, Expr, Literal, WindowCall
from kquery_spark.expr.properties import conjuncts, is_deterministic
from kquery_spark.functions.registry import function
from kquery_spark.functions.sql_form import Logic
from kquery_spark.logical import Filter, LogicalPlan, Projection, Window, WindowGroupLimit
from kquery_spark.logical.plan import with_new_children

# Spark's default of spark.sql.optimizer.windowGroupLimitThreshold: with more rows per group, few are dropped.
_MAX_LIMIT = 1000


def group_limits(plan: LogicalPlan) -> LogicalPlan:
    """Keep only the first rows of each group if a filter above the window drops the others:

        Filter: #r <= 2                                    Filter: #r <= 2
          Window: [ROW_NUMBER() AS r], ...           ->      Window: [ROW_NUMBER() AS r], ...
            Scan: t                                            WindowGroupLimit: row_number <= 2, ...
                                                                 Scan: t

    All calls of the window must be rankings. Their values depend only on the rows that sort before, so they stay the same.
    """
    plan = with_new_children(plan, [group_limits(child) for child in plan.children])
    if not isinstance(plan, Filter) or not isinstance(plan.child, Window):
        return plan
    window = plan.child
    rankings = {call.name: _ranking(call.expr) for call in window.calls}
    limits = [
        (limit, ranking)
        for term in conjuncts(plan.condition)
        for name, limit in _upper_bounds(term)
        if (ranking := rankings.get(name)) is not None
    ]
    if not limits or None in rankings.values() or not all(map(is_deterministic, window.expressions)):
        return plan
    limit, ranking = min(limits)
    if limit > _MAX_LIMIT or _is_limited(window.child):
        return plan
    limited = WindowGroupLimit(window.child, window.partition, window.order, ranking, max(0, limit))
    return plan.with_children([window.with_children([limited])])


def _ranking(call: Expr) -> str | None:
    """Return the function of a call that ranks rows; None for other calls."""
    return call.function if isinstance(call, WindowCall) and call.ranks_rows else None


def _upper_bounds(term: Expr) -> list[tuple[str, int]]:
    """Return the column and the largest integer that passes a comparison with a constant; an empty list for other terms."""
    match term:
        case Call(args=(Literal() as bound, Column() as column)) if term.entry.operator.flipped:
            logic = function(term.entry.operator.flipped).operator.logic
        case Call(args=(Column() as column, Literal() as bound)):
            logic = term.logic
        case _:
            return []
    if not isinstance(bound.value, int):
        return []
    match logic:
        case Logic.LESS:
            return [(column.name, bound.value - 1)]
        case Logic.LESS_OR_EQUAL | Logic.EQUAL | Logic.EQUAL_NULL_SAFE:
            return [(column.name, bound.value)]
    return []


def _is_limited(plan: LogicalPlan) -> bool:
    """True if groups are limited already, as in plans of Spark."""
    while isinstance(plan, Projection):
        plan = plan.child
    return isinstance(plan, WindowGroupLimit)
