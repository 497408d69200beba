"""Expressions whose value does not depend on rows become literals."""

from __future__ import annotations

from kquery_spark.errors import KQueryError
from kquery_spark.expr import Call, Case, Cast, Expr, HigherOrder, InList, Literal, transform
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.expr.properties import is_constant
from kquery_spark.functions.dates import can_truncate
from kquery_spark.logical import LogicalPlan, transform_plan
from kquery_spark.logical.plan import rewrite_expressions
from kquery_spark.types import names as t

# operators that Catalyst calls null-intolerant; what the other side would do, raise included, is not asked
_NULL_OF_NULL = frozenset(
    ("add", "subtract", "multiply", "divide", "div", "mod", "pmod", "eq", "neq", "lt", "lteq", "gt", "gteq")
)
_CHOICES = {"elt": 0, "trunc": 1, "date_trunc": 0}  # the argument that says what is evaluated


def constant_folding(plan: LogicalPlan) -> LogicalPlan:
    """``#a > (1 + 2)`` becomes ``#a > 3``, ``TRUE AND x`` becomes ``x``, ``x AND FALSE`` FALSE, ``x + NULL`` NULL.

    These are Catalyst's ConstantFolding, BooleanSimplification and NullPropagation. The last two drop an ``x`` that
    would raise, as Spark does. A constant that raises is left alone: whether it raises is for the rows to decide.
    """
    return transform_plan(plan, lambda node: rewrite_expressions(node, lambda e: transform(e, _fold)))


def _fold(expr: Expr) -> Expr:
    if isinstance(expr, HigherOrder):
        body = transform(expr.body, _fold)
        return expr if body is expr.body else expr.with_body(body)
    if isinstance(expr, Call):
        if expr.function in ("and", "or"):
            return _connective(expr)
        if expr.function in _NULL_OF_NULL and any(map(_is_null, expr.args)):
            return Literal(None, expr.dtype)
        if expr.function in _CHOICES:
            return _chosen(expr)
    return _evaluated(expr) if isinstance(expr, Call | Cast | Case | InList) else expr


def _evaluated(expr: Expr) -> Expr:
    """The value of a constant expression; others, and constants that raise, as they are."""
    # literals hold plain values, which can be compared and shipped
    if t.is_nested(expr.dtype) or not is_constant(expr):
        return expr
    try:
        return evaluate_constant(expr)
    except KQueryError:
        return expr


def _chosen(expr: Call) -> Expr:
    """What a constant argument leaves of a call; Spark evaluates no more than that."""
    choice = expr.args[_CHOICES[expr.function]]
    if not isinstance(choice, Literal):
        return expr
    if expr.function == "elt":
        others = expr.args[1:]
        inside = choice.value is not None and 0 < choice.value <= len(others)
        return others[choice.value - 1] if inside and others[choice.value - 1].dtype == expr.dtype else expr
    return (
        expr
        if choice.value is not None and can_truncate(expr.function, choice.value)
        else Literal(None, expr.dtype)
    )


def _connective(expr: Call) -> Expr:
    left, right = expr.args
    neutral = expr.function == "and"
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Literal) and side.value is not None:
            if side.value is neutral:
                return other
            return Literal(not neutral, t.BOOL)
    return expr


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None
