"""Sums and products of whole numbers, with their constants gathered into one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import filterfalse

from kquery_spark.errors import KQueryError
from kquery_spark.expr import Call, Expr, HigherOrder, Literal
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.expr.properties import is_constant, is_deterministic
from kquery_spark.logical import LogicalPlan, transform_plan
from kquery_spark.logical.plan import rewrite_expressions
from kquery_spark.types import names as t


def associative_operators(plan: LogicalPlan) -> LogicalPlan:
    """``1 + #a + -1`` becomes ``#a + 0``, ``2 * (#a * #b)`` becomes ``(#a * #b) * 2``.

    This is Catalyst's ReorderAssociativeOperator, and it decides what overflows: the first does not, though ``1 + #a``
    may. As there, all operators of such a sum take the mode of the outermost, ``try_add`` or ``+``, which stands for
    those inside of it. Plans that come from Spark have been through it. Constants are literals by now, but for those
    that raise.
    """
    return transform_plan(plan, lambda node: rewrite_expressions(node, _reordered))


def _reordered(expr: Expr, gathered: str | None = None) -> Expr:
    """Rewrites an expression. ``gathered``: the function around it, if its terms have no constant to gather any more."""
    below = None
    if isinstance(expr, Call) and expr.function == gathered:
        below = gathered
    elif isinstance(expr, Call):
        terms = _reorderable_terms(expr)
        # a constant that is no literal by now raises
        if terms and all(isinstance(e, Literal) for e in filter(is_constant, terms)):
            below = expr.function
            expr = _gathered(expr, terms)
    elif isinstance(expr, HigherOrder):
        body = _reordered(expr.body)
        expr = expr if body is expr.body else expr.with_body(body)
    children = expr.children
    changed = [_reordered(c, below) for c in children]
    if any(a is not b for a, b in zip(changed, children, strict=True)):
        return expr.with_children(changed)
    return expr


def _gathered(expr: Call, terms: Sequence[Expr]) -> Expr:
    """A sum or product with one constant at its end; itself if that is not what Spark makes of it."""
    constants, others = list(filter(is_constant, terms)), list(filterfalse(is_constant, terms))
    if not constants or not others:
        return expr
    constant = _evaluated(_joined(expr, constants))
    if isinstance(constant, Literal) and constant.value is None:
        return constant
    if constant == expr.args[-1] and _is_joined(expr, expr.args[0], others):
        return expr
    return expr.with_children([_joined(expr, others), constant])


def _reorderable_terms(expr: Call) -> list[Expr]:
    """The terms of a sum or product of three integers or more; none for anything else."""
    if not expr.entry.operator.associative or not t.is_integral(expr.dtype):
        return []
    terms = list(_terms(expr, expr.function))
    return terms if len(terms) >= 3 and is_deterministic(expr) else []


def _evaluated(constant: Expr) -> Expr:
    """The value of a constant expression; itself if it raises, which is for the rows to do."""
    with contextlib.suppress(KQueryError):
        return evaluate_constant(constant)
    return constant


def _terms(expr: Expr, function: str) -> Iterator[Expr]:
    if isinstance(expr, Call) and expr.function == function and not is_constant(expr):
        for arg in expr.args:
            yield from _terms(arg, function)
    else:
        yield expr


def _is_joined(like: Call, expr: Expr, terms: Sequence[Expr]) -> bool:
    """Whether an expression is what ``_joined`` gives for its own terms; by identity, as ``==`` recurses through them."""
    for term in reversed(terms[1:]):
        left, right = expr.children
        if right is not term or not isinstance(expr, Call) or expr.mode is not like.mode:
            return False
        expr = left
    return expr is terms[0]


def _joined(like: Call, terms: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: like.with_children([a, b]), terms)
