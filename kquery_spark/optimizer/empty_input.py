"""The value of an aggregate without GROUP BY over no rows: 0 for a count, NULL for a sum.

A correlated scalar subquery becomes a left join with the groups of its aggregate. An outer row without a group would get
NULL from that join, but the subquery has to return the value of the aggregate over no rows.
"""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Expr, Literal, substitute
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.expr.properties import is_constant
from kquery_spark.logical import Aggregate, Filter, LogicalPlan, Projection, Sort


def value_over_no_rows(plan: LogicalPlan) -> Literal:
    """Return the value of the plan's first column when its aggregate sees no rows; raises Unsupported if it is not known."""
    name = plan.schema.names[0]
    value = _empty_value(plan, plan.column(name))
    if not is_constant(value):
        raise Unsupported("this correlated subquery is not supported: its value for no rows is not known")
    return evaluate_constant(value)


def _empty_value(plan: LogicalPlan, expr: Expr) -> Expr:
    """Replace the aggregates in ``expr``, an expression over the plan's output, by their values over no rows."""
    match plan:
        case Projection():
            return _empty_value(plan.child, substitute(expr, {e.name: e.expr for e in plan.exprs}))
        case Sort():
            return _empty_value(plan.child, expr)
        case Filter():
            # HAVING: if it drops the aggregate's row over no rows, the subquery returns no row, which is NULL.
            test = _empty_value(plan.child, plan.condition)
            if is_constant(test) and evaluate_constant(test).value is not True:
                return Literal(None, expr.dtype)
            raise Unsupported("a correlated subquery with HAVING that is true for no rows is not supported")
        case Aggregate():
            return substitute(expr, {a.name: _empty_aggregate(a.expr) for a in plan.aggregates})
    raise Unsupported(f"a correlated subquery over {type(plan).__name__} is not supported")


def _empty_aggregate(expr: Expr) -> Expr:
    assert isinstance(expr, AggregateCall)
    if expr.nullable:
        return Literal(None, expr.dtype)
    if expr.entry.counts:
        return Literal(0, expr.dtype)
    raise Unsupported(f"a correlated subquery of {expr.function} is not supported")
