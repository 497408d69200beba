"""AGGREGATE with a finish lambda: an expression of the last state."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr.lambdas import HigherOrder
from kquery_spark.expr.nodes import Call, Case, Cast, Column, Expr
from kquery_spark.expr.properties import can_raise
from kquery_spark.expr.traverse import substitute


def finished(folded: HigherOrder, state: str, finish: Expr) -> Expr:
    """Return ``finish`` with the column ``state`` replaced by the result of the fold; NULL if the array is NULL.

    Raises Unsupported if the fold can raise an error and the finish lambda does not evaluate the state in every row:
    Spark always merges first, and so raises the error.
    """
    if can_raise(folded) and not _always_evaluates(finish, state):
        raise Unsupported(
            "AGGREGATE that may raise errors and whose finish lambda may skip the state is not supported"
        )
    value = substitute(finish, {state: folded})
    array = folded.arguments[0]
    if value is folded or not array.nullable:
        return value
    return Case(((Call.of("isnotnull", array), value),))


def _always_evaluates(expr: Expr, name: str) -> bool:
    """Return whether the expression evaluates the column in every row; False where that is not known."""
    match expr:
        case Column():
            return expr.name == name
        case Cast():
            return _always_evaluates(expr.child, name)
        case Call() if not expr.entry.lazy and not expr.entry.operator.connective:
            # Spark evaluates the arguments in this order up to the first NULL, so those up to the first nullable
            # argument are always evaluated.
            order = expr.entry.evaluation_order(len(expr.args)) or range(len(expr.args))
            evaluated = next((n for n, i in enumerate(order) if expr.args[i].nullable), len(order) - 1)
            return any(_always_evaluates(expr.args[i], name) for i in order[: evaluated + 1])
    return bool(expr.children) and _always_evaluates(expr.children[0], name)
