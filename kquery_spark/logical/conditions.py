"""Splits join conditions into equi-join keys and a residual condition, and orders the terms of filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kquery_spark.expr import Call, Cast, Column, Expr, Literal, columns_of
from kquery_spark.expr.properties import can_raise, conjuncts
from kquery_spark.functions.nullability import Nullability
from kquery_spark.functions.sql_form import Logic
from kquery_spark.logical.join import JoinKey


def split_condition(
    condition: Expr | None, left_names: Iterable[str], right_names: Iterable[str]
) -> tuple[list[JoinKey], list[Expr]]:
    """Return the equalities between the two sides as keys, and the other terms of the AND in their original order.

    ``a.x = b.y AND a.z < b.w AND b.v = a.u`` gives the keys ``a.x = b.y`` and ``a.u = b.v`` and the residual ``a.z < b.w``.
    """
    left, right = set(left_names), set(right_names)
    keys: list[JoinKey] = []
    residual: list[Expr] = []
    for term in conjuncts(condition):
        key = as_key(term, left, right)
        if key is None:
            residual.append(term)
        elif key not in keys:
            keys.append(key)
    return keys, residual


def as_key(term: Expr, left: set[str], right: set[str]) -> JoinKey | None:
    """Return the term as a key whose left part reads only the left side; None if it is not such an equality."""
    if not (isinstance(term, Call) and term.entry.operator.equality):
        return None
    a, b = term.args
    reads_a, reads_b = columns_of(a), columns_of(b)
    if not reads_a or not reads_b or a.dtype != b.dtype:
        return None
    null_safe = term.logic is Logic.EQUAL_NULL_SAFE
    if reads_a <= left and reads_b <= right:
        return JoinKey(a, b, null_safe)
    if reads_a <= right and reads_b <= left:
        return JoinKey(b, a, null_safe)
    return None


def evaluation_order(terms: Sequence[Expr]) -> list[Expr]:
    """Return the terms of a filter in the order in which Spark evaluates them, so that the same rows raise errors.

    Spark's FilterExec does not evaluate IS NOT NULL in the order of the query: it tests a column right before the first
    other term that reads it, and the remaining columns last. ``a IS NOT NULL AND 1 / b > 0 AND a > 5`` raises for a row
    with b = 0 even if a is NULL. This is the order of Spark's generated code; its interpreter raises for fewer rows.
    """
    if not any(map(can_raise, terms)):
        return list(terms)
    tests = {term: columns_of(term) for term in terms if _is_deferred(term)}
    ordered: list[Expr] = []
    for term in terms:
        if term not in tests:
            read = columns_of(term)
            # Only a test of a plain column comes early. Other tests, such as ``a + b IS NOT NULL``, come last.
            first = [test for test in tests if _tests_column(test) and tests[test] <= read]
            ordered += [*(test for test in first if test not in ordered), term]
    return [*ordered, *(test for test in tests if test not in ordered)]


def _is_deferred(term: Expr) -> bool:
    """True for an IS NOT NULL that Spark moves from its place in the query."""
    if not (isinstance(term, Call) and term.logic is Logic.IS_NOT_NULL):
        return False
    return not can_raise(term) or _is_null_intolerant(term.children[0])


def _is_null_intolerant(expr: Expr) -> bool:
    """True if the value is NULL whenever a column that it reads is NULL (Spark's NullIntolerant)."""
    if isinstance(expr, Call) and expr.entry.nullable is not Nullability.ANY_ARGUMENT:
        return False
    return isinstance(expr, Call | Cast | Column | Literal) and all(map(_is_null_intolerant, expr.children))


def _tests_column(test: Expr) -> bool:
    return isinstance(test.children[0], Column)
