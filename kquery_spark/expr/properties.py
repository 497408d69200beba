"""Questions asked of expressions."""

from __future__ import annotations

from kquery_spark.expr.lambdas import HigherOrder
from kquery_spark.expr.nodes import Call, Cast, Expr, Literal
from kquery_spark.expr.traverse import walk
from kquery_spark.functions import casts


def can_raise(expr: Expr) -> bool:
    """Whether some row can make the expression raise, so that excluded rows must not be shown to it."""
    return any(_node_raises(e) for e in walk(expr))


def _node_raises(expr: Expr) -> bool:
    if isinstance(expr, Call):
        entry = expr.entry
        if expr.mode not in entry.raises:
            return False
        return entry.safe_for is None or not entry.safe_for([a.dtype for a in expr.args], expr.literals)
    if isinstance(expr, HigherOrder):
        return can_raise(expr.body)
    if isinstance(expr, Cast):
        return casts.can_raise(expr.child.dtype, expr.to, expr.mode)
    return False


def is_deterministic(expr: Expr) -> bool:
    """Whether evaluating twice gives the same."""
    for part in walk(expr):
        if isinstance(part, Call) and not part.entry.deterministic:
            return False
        if isinstance(part, HigherOrder) and not is_deterministic(part.body):
            return False
    return True


def is_constant(expr: Expr) -> bool:
    """Whether the expression reads no column and always gives the same value."""
    return all(isinstance(e, Literal) or e.children for e in walk(expr)) and is_deterministic(expr)


def conjuncts(expr: Expr | None) -> list[Expr]:
    """The terms of an AND, left to right; [] for no condition."""
    if expr is None:
        return []
    if isinstance(expr, Call) and expr.function == "and":
        return conjuncts(expr.args[0]) + conjuncts(expr.args[1])
    return [expr]


def conjunction(terms: list[Expr]) -> Expr | None:
    """AND of the terms in order; None for none."""
    result: Expr | None = None
    for term in terms:
        result = term if result is None else Call.of("and", result, term)
    return result
