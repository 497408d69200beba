"""Properties of expressions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from kquery_spark.expr.lambdas import HigherOrder
from kquery_spark.expr.nodes import Call, Case, Cast, Expr, Literal
from kquery_spark.expr.traverse import walk
from kquery_spark.expr.user_calls import UserCall
from kquery_spark.functions import casts
from kquery_spark.functions.sql_form import Logic

#: Up to this number of terms, a conjunction is a left-deep chain; larger ones are balanced trees.
_MAX_CHAINED_TERMS = 16


def can_raise(expr: Expr) -> bool:
    """Return whether some row can make the expression raise, so that excluded rows must not be shown to it."""
    return any(_node_raises(e) for e in walk(expr))


def _node_raises(expr: Expr) -> bool:
    if isinstance(expr, Call):
        entry = expr.entry
        if expr.mode not in entry.raises:
            return False
        is_safe = entry.safe_for
        return is_safe is None or not is_safe([a.dtype for a in expr.args], expr.literals, expr.mode)
    if isinstance(expr, HigherOrder):
        return expr.mode in expr.entry.raises or can_raise(expr.body)
    if isinstance(expr, Cast):
        return casts.can_raise(expr.child.dtype, expr.to, expr.mode)
    return isinstance(expr, UserCall)


def always_evaluated(expr: Expr, include_raising: bool = True) -> Iterator[Expr]:
    """Yield the subexpressions that are evaluated for every row for which the expression is, outermost first.

    include_raising: include those that can raise. A strict function stops at the first NULL argument, so for a row with a
    NULL in ``#a``, the division in ``#a + 1 / #b`` is not evaluated and must not raise. Only the first evaluation may raise.
    """
    if include_raising or not can_raise(expr):
        yield expr
    if isinstance(expr, Case):
        return  # its parts are not evaluated for every row
    if isinstance(expr, Call) and expr.entry.lazy:
        yield from always_evaluated(expr.args[0], include_raising)
        return
    # Only the argument that the function evaluates first is evaluated even if another one is NULL.
    order = expr.entry.evaluation_order(len(expr.args)) if isinstance(expr, Call) else ()
    for position, child in enumerate(expr.children):
        yield from always_evaluated(child, include_raising and (not order or position == order[0]))


def is_deterministic(expr: Expr) -> bool:
    """Return whether evaluating twice gives the same."""
    for part in walk(expr):
        if isinstance(part, Call) and not part.entry.deterministic:
            return False
        if isinstance(part, HigherOrder) and not is_deterministic(part.body):
            return False
        if isinstance(part, UserCall) and not part.deterministic:
            return False
    return True


def is_pure(expr: Expr) -> bool:
    """Deterministic and infallible: may be reordered, duplicated, or evaluated on rows that are filtered out."""
    return is_deterministic(expr) and not can_raise(expr)


def is_null_literal(expr: Expr) -> bool:
    """Return whether the expression is the literal NULL, of any type."""
    return isinstance(expr, Literal) and expr.value is None


def is_constant(expr: Expr) -> bool:
    """Return whether Spark calls the expression ``foldable``: it reads no columns, is deterministic, and calls no UDF."""
    return all(map(_folds, walk(expr))) and is_deterministic(expr)


def _folds(expr: Expr) -> bool:
    """Return whether the expression is a constant if its operands are."""
    if isinstance(expr, HigherOrder) or (isinstance(expr, Call) and not expr.entry.foldable):
        return False
    return isinstance(expr, Literal) or (bool(expr.children) and not isinstance(expr, UserCall))


def conjuncts(expr: Expr | None) -> list[Expr]:
    """The terms of an AND, left to right; [] for no condition."""
    if expr is None:
        return []
    if isinstance(expr, Call) and expr.logic is Logic.AND:
        return conjuncts(expr.args[0]) + conjuncts(expr.args[1])
    return [expr]


def conjunction(terms: list[Expr]) -> Expr | None:
    """AND of the terms in order; None for none."""
    return chain("and", terms) if terms else None


def chain(word: str, terms: list[Expr]) -> Expr:
    """Combine the terms, in order, with an associative function: ``and``, ``or`` or ``add``."""
    if len(terms) <= _MAX_CHAINED_TERMS:
        return reduce(lambda a, b: Call.of(word, a, b), terms)
    # Combine pairs, then pairs of pairs: a shallow tree, because functions that walk over expressions are recursive.
    while len(terms) > 1:
        pairs: list[Expr] = [Call.of(word, a, b) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[2 * len(pairs) :]
    return terms[0]
