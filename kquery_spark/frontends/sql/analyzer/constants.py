"""Evaluates constant expressions whose value the analyzer needs: LIMIT, frame bounds, percentiles."""

from __future__ import annotations

from kquery_spark.errors import KQueryError
from kquery_spark.expr import Column, Expr, Literal
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.expr.properties import is_constant


def constant_of(expr: Expr) -> Literal | None:
    """The value of a constant expression; None for other expressions and for constants that raise."""
    if isinstance(expr, Literal):
        return expr
    if isinstance(expr, Column) or not is_constant(expr):
        return None
    try:
        return evaluate_constant(expr)
    except KQueryError:
        return None
