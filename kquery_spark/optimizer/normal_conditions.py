"""Rewrites conditions in a normal form, so that other rules and decorrelation find comparisons, keys and IN lists in them.

    NOT (a > 1)                          ->  a <= 1
    (a = b AND x) OR (a = b AND y)       ->  a = b AND (x OR y)        -- a = b can now become a join key
    a = 1 OR a IN (2, 3)                 ->  a IN (1, 2, 3)            -- which prunes row groups
    x AND x                              ->  x

Terms that can raise are not moved: they would be evaluated for other rows than before.
"""

from __future__ import annotations

from kquery_spark.expr import Call, Expr, InList, Literal, transform
from kquery_spark.expr.properties import can_raise, chain, conjunction, conjuncts, is_deterministic
from kquery_spark.functions.sql_form import Logic
from kquery_spark.logical import Filter, Join, LogicalPlan, Projection
from kquery_spark.logical.plan import rewrite_expressions
from kquery_spark.types import names as t


def normal_condition(condition: Expr) -> Expr:
    """Return a condition in the normal form that the docstring of this module describes."""
    return transform(condition, _simplify)


def normalize_node(node: LogicalPlan) -> LogicalPlan:
    """Return the node with its conditions in normal form; the child instead of a Filter that is always true."""
    if not isinstance(node, Filter | Join | Projection):
        return node
    changed = rewrite_expressions(node, normal_condition)
    if isinstance(changed, Filter):
        terms = [x for x in _distinct(conjuncts(changed.condition)) if not _is_literal(x, True)]
        condition = conjunction(terms)
        if condition is None:
            return changed.child
        if condition != changed.condition:
            return Filter(changed.child, condition)
    return changed


def _simplify(expr: Expr) -> Expr:
    if not isinstance(expr, Call):
        return expr
    match expr.logic:
        case Logic.NOT:
            return _negate(expr)
        case Logic.OR:
            return _simplify_or(expr)
        case Logic.AND:
            left, right = expr.args
            return left if left == right and is_deterministic(left) else expr
    return expr


def _negate(expr: Call) -> Expr:
    """Rewrite NOT of a literal, of a NOT or of a comparison. ``NOT a > 1`` and ``a <= 1`` are both NULL for NULL."""
    inner = expr.args[0]
    if isinstance(inner, Literal):
        return Literal(None if inner.value is None else not inner.value, t.BOOL)
    if not isinstance(inner, Call):
        return expr
    if inner.logic is Logic.NOT:
        return inner.args[0]
    opposite = inner.entry.operator.opposite
    return Call.of(opposite, *inner.args) if opposite else expr


def _simplify_or(expr: Call) -> Expr:
    terms = disjuncts(expr)
    # OR evaluates its terms from left to right and stops at TRUE. A term that can raise must not be evaluated for more
    # rows.
    if any(can_raise(x) or not is_deterministic(x) for x in terms):
        return expr
    terms = _distinct(terms)
    if any(_is_literal(x, True) for x in terms):
        return Literal(True, t.BOOL)
    terms = _merge_equalities([x for x in terms if not _is_literal(x, False)] or [Literal(False, t.BOOL)])
    return terms[0] if len(terms) == 1 else _factor_out(terms)


def _factor_out(terms: list[Expr]) -> Expr:
    """Return ``a AND (x OR y)`` for ``(a AND x) OR (a AND y)``, and ``a`` for ``a OR (a AND x)``."""
    # The terms of each side, and those that all sides have.
    sides = [conjuncts(x) for x in terms]
    shared = [x for x in sides[0] if all(x in side for side in sides[1:])]
    if not shared:
        return chain("or", terms)
    own = [_remaining_terms(side, shared) for side in sides]
    differing = [x for x in own if x is not None]
    # A side with nothing but shared terms is true whenever these are, so the other sides add nothing: a OR (a AND x).
    if len(differing) == len(own):
        shared.append(chain("or", _merge_equalities(differing)))
    return chain("and", shared)


def _remaining_terms(terms: list[Expr], shared: list[Expr]) -> Expr | None:
    """Return the conjunction of the terms that are not shared; None if all are."""
    return conjunction([x for x in terms if x not in shared])


def disjuncts(expr: Expr) -> list[Expr]:
    """Return the terms of an OR, left to right."""
    if isinstance(expr, Call) and expr.logic is Logic.OR:
        return disjuncts(expr.args[0]) + disjuncts(expr.args[1])
    return [expr]


def _merge_equalities(terms: list[Expr]) -> list[Expr]:
    """Merge ``a = 1`` and ``a IN (2, 3)``, terms of one OR, into ``a IN (1, 2, 3)`` at the position of the first of them."""
    tests = [_membership(term) for term in terms]
    values: dict[Expr, list[Literal]] = {}
    for test in tests:
        if test is not None:
            values.setdefault(test[0], []).extend(test[1])
    merged: list[Expr] = []
    already_merged: set[Expr] = set()
    for term, test in zip(terms, tests, strict=True):
        if test is None or len(values[test[0]]) == len(test[1]):
            merged.append(term)  # no equality, or the only one of its expression
        elif test[0] not in already_merged:
            already_merged.add(test[0])
            merged.append(InList(test[0], tuple(dict.fromkeys(values[test[0]]))))
    return merged


def _membership(term: Expr) -> tuple[Expr, tuple[Literal, ...]] | None:
    """Return the expression and the literals if the term is ``expr = literal`` or ``expr IN (literals)``; else None."""
    if isinstance(term, InList):
        return term.child, term.values
    if isinstance(term, Call) and term.logic is Logic.EQUAL:
        for tested, value in (term.args, term.args[::-1]):
            if isinstance(value, Literal) and _may_be_in_list(tested, value):
                return tested, (value,)
    return None


def _may_be_in_list(tested: Expr, value: Literal) -> bool:
    """True if ``tested = value`` can be part of an IN list: both have the same flat type, and the value is not NaN."""
    if isinstance(tested, Literal) or tested.dtype != value.dtype or t.is_nested(tested.dtype):
        return False
    return bool(value.value == value.value)  # NaN is the only value that is not equal to itself


def _distinct(terms: list[Expr]) -> list[Expr]:
    seen: set[Expr] = set()
    distinct = []
    for term in terms:
        if term not in seen or not is_deterministic(term):
            distinct.append(term)
        seen.add(term)
    return distinct


def _is_literal(expr: Expr, value: bool) -> bool:
    return isinstance(expr, Literal) and expr.value is value
