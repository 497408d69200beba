"""Where the values of an output column come from."""

from __future__ import annotations

from kquery_spark.expr import Column, Expr
from kquery_spark.logical.aggregate import Aggregate
from kquery_spark.logical.expand import Expand
from kquery_spark.logical.plan import LogicalPlan
from kquery_spark.logical.projection import Projection
from kquery_spark.logical.scan import Scan
from kquery_spark.logical.set_operation import SetOperation
from kquery_spark.logical.union import Union


def origin(plan: LogicalPlan, expr: Expr) -> tuple[Scan, str] | None:
    """The scan, and its source's column, of which a plan's output column is a copy; None for computed ones."""
    if not isinstance(expr, Column):
        return None
    match plan:
        case Scan():
            return plan, expr.name
        case Projection():
            inner = next((e.expr for e in plan.exprs if e.name == expr.name), None)
            return None if inner is None else origin(plan.child, inner)
        case Aggregate():
            key = next((k.expr for k in plan.keys if k.name == expr.name), None)
            return None if key is None else origin(plan.child, key)
        case Expand() | SetOperation() | Union():
            return None
    for child in plan.children:
        if expr.name in child.schema.names:
            return origin(child, expr)
    return None
