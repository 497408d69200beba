"""Where the values of an output column or expression come from."""

from __future__ import annotations

from kquery_spark.expr import Column, Expr, columns_of, substitute
from kquery_spark.logical.aggregate import Aggregate
from kquery_spark.logical.expand import Expand
from kquery_spark.logical.plan import LogicalPlan
from kquery_spark.logical.projection import Projection
from kquery_spark.logical.scan import Scan
from kquery_spark.logical.set_operation import SetOperation
from kquery_spark.logical.union import Union


def origin(plan: LogicalPlan, expr: Expr) -> tuple[Scan, str] | None:
    """The scan, and its source's column, of which a plan's output column is a copy; None for computed ones."""
    at = plan, expr
    while isinstance(at[1], Column):
        if isinstance(at[0], Scan):
            return at[0], at[1].name
        below = _below(*at)
        if below is None:
            return None
        at = below
    return None


def computed_from(plan: LogicalPlan, expr: Expr) -> tuple[Scan, Expr] | None:
    """The one scan whose columns an expression over a plan's output is made of, and the expression over them."""
    at = plan, expr
    while not isinstance(at[0], Scan):
        below = _below(*at)
        if below is None:
            return None
        at = below
    return (at[0], at[1]) if columns_of(at[1]) else None


def _below(plan: LogicalPlan, expr: Expr) -> tuple[LogicalPlan, Expr] | None:
    """An input of a node, and the expression over it; None where the node makes one of its columns, or mixes inputs."""
    names = columns_of(expr)
    match plan:
        case Projection():
            return plan.child, substitute(expr, {e.name: e.expr for e in plan.exprs if e.name in names})
        case Aggregate():
            keys = {k.name: k.expr for k in plan.keys}
            return (plan.child, substitute(expr, keys)) if names <= keys.keys() else None
        case Expand() | SetOperation() | Union():
            return None
    return next(((c, expr) for c in plan.children if names <= set(c.schema.names)), None)
