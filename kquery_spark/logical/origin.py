"""Where the values of an output column or expression come from."""

from __future__ import annotations

from kquery_spark.expr import Column, Expr, columns_of
from kquery_spark.logical.plan import LogicalPlan
from kquery_spark.logical.scan import Scan


def origin(plan: LogicalPlan, expr: Expr) -> tuple[Scan, str] | None:
    """The scan, and its source's column, of which a plan's output column is a copy; None for computed ones."""
    at = plan, expr
    while isinstance(at[1], Column):
        if isinstance(at[0], Scan):
            return at[0], at[1].name
        below = at[0].input_of(at[1])
        if below is None:
            return None
        at = below
    return None


def computed_from(plan: LogicalPlan, expr: Expr) -> tuple[Scan, Expr] | None:
    """The one scan whose columns an expression over a plan's output is made of, and the expression over them."""
    at = plan, expr
    while not isinstance(at[0], Scan):
        below = at[0].input_of(at[1])
        if below is None:
            return None
        at = below
    return (at[0], at[1]) if columns_of(at[1]) else None
