"""Gathers the constants of integer sums and products into one constant."""

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
    """Gather constants: ``1 + #a + -1`` becomes ``#a + 0``, and ``2 * (#a * #b)`` becomes ``(#a * #b) * 2``.

    This is Catalyst's ReorderAssociativeOperator. It is not only an optimization, because it decides whether a sum
    overflows: ``1 + #a + -1`` never does after the rule, although ``1 + #a`` may. As in Catalyst, all operators of a sum
    take the mode of the outermost one (``try_add`` or ``+``). Plans that come from Spark have been through this rule
    already. It runs after constant folding, so constants are literals, except those that raise.
    """
    return transform_plan(plan, lambda node: rewrite_expressions(node, _reorder))


def _reorder(expr: Expr, outer_function: str | None = None) -> Expr:
    """Rewrite an expression. ``outer_function``: the function directly above it, if its constants are already gathered."""
    # ``gathered_function`` is passed to the operands, so that an inner sum of a larger sum is not gathered a second time.
    gathered_function = None
    if isinstance(expr, Call) and expr.function == outer_function:
        gathered_function = outer_function
    elif isinstance(expr, Call):
        terms = _reorderable_terms(expr)
        # Constants that are not literals after constant folding raise an error. Leave their evaluation to the rows.
        if terms and all(isinstance(e, Literal) for e in filter(is_constant, terms)):
            gathered_function = expr.function
            expr = _gather_constants(expr, terms)
    elif isinstance(expr, HigherOrder):
        body = _reorder(expr.body)
        expr = expr if body is expr.body else expr.with_body(body)
    children = expr.children
    changed = [_reorder(c, gathered_function) for c in children]
    if any(a is not b for a, b in zip(changed, children, strict=True)):
        return expr.with_children(changed)
    return expr


def _gather_constants(expr: Call, terms: Sequence[Expr]) -> Expr:
    """Return the sum or product with one constant at its end; the same object if it already has this form."""
    constants, others = list(filter(is_constant, terms)), list(filterfalse(is_constant, terms))
    if not constants or not others:
        return expr
    # ``1 + #a + 2 + #b`` has the constants 1, 2 and the others #a, #b, and becomes ``(#a + #b) + 3``.
    constant = _evaluate_if_possible(_combine(expr, constants))
    if isinstance(constant, Literal) and constant.value is None:
        return constant
    if constant == expr.args[-1] and _is_combination(expr, expr.args[0], others):
        return expr
    return expr.with_children([_combine(expr, others), constant])


def _reorderable_terms(expr: Call) -> list[Expr]:
    """Return the terms of an integer sum or product with at least three terms; an empty list for anything else."""
    if not expr.entry.operator.associative or not t.is_integral(expr.dtype):
        return []
    terms = list(_terms(expr, expr.function))
    return terms if len(terms) >= 3 and is_deterministic(expr) else []


def _evaluate_if_possible(constant: Expr) -> Expr:
    """Return the value of a constant expression, or the expression itself if it raises, so that it raises for a row."""
    with contextlib.suppress(KQueryError):
        return evaluate_constant(constant)
    return constant


def _terms(expr: Expr, function: str) -> Iterator[Expr]:
    """Yield the terms of nested calls of ``function``: a, b and c for ``(a + b) + c``."""
    if isinstance(expr, Call) and expr.function == function and not is_constant(expr):
        for arg in expr.args:
            yield from _terms(arg, function)
    else:
        yield expr


def _is_combination(like: Call, expr: Expr, terms: Sequence[Expr]) -> bool:
    """True if ``expr`` is what ``_combine`` returns. Compares terms by identity, because ``==`` recurses into them."""
    for term in reversed(terms[1:]):
        left, right = expr.children
        if right is not term or not isinstance(expr, Call) or expr.mode is not like.mode:
            return False
        expr = left
    return expr is terms[0]


def _combine(like: Call, terms: Sequence[Expr]) -> Expr:
    """Return ``((a + b) + c) + ...`` with the function and mode of ``like``."""
    return reduce(lambda a, b: like.with_children([a, b]), terms)
