"""The order in which the terms of a filter are evaluated, which decides for which rows they can raise an error."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.expr import Call, Cast, Column, Expr, Literal, columns_of, walk
from kquery_spark.expr.properties import can_raise
from kquery_spark.functions.sql_form import Logic
from kquery_spark.logical.filter import Filter
from kquery_spark.logical.limit import Limit
from kquery_spark.logical.plan import LogicalPlan
from kquery_spark.logical.projection import Projection
from kquery_spark.logical.scan import Scan
from kquery_spark.sources.memory import MemorySource


def ordered_terms(plan: LogicalPlan, terms: Sequence[Expr]) -> list[Expr]:
    """Return the terms of a Filter or a Scan in the order in which Spark evaluates them.

    This is ``evaluation_order``, except over literal rows (VALUES): Spark filters these while it plans, in the order of the
    query.
    """
    while isinstance(plan, Projection | Filter | Limit):
        plan = plan.child
    if isinstance(plan, Scan) and isinstance(plan.source, MemorySource):
        return list(terms)
    return evaluation_order(terms)


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


def has_known_order(term: Expr) -> bool:
    """False for an IS NOT NULL that can raise if it is not known whether Spark defers it."""
    return not (_tests_for_null(term) and can_raise(term)) or all(map(_is_classified, walk(term.children[0])))


def _is_deferred(term: Expr) -> bool:
    """True for an IS NOT NULL that Spark moves from its place in the query: all expressions in it are NullIntolerant.

    A test that cannot raise is assumed to be moved. At worst, other terms then raise for rows that it drops in Spark.
    """
    if not _tests_for_null(term):
        return False
    nodes = walk(term.children[0])
    return not can_raise(term) or all(
        _is_classified(node) and not isinstance(node, Literal) for node in nodes
    )


def _tests_for_null(term: Expr) -> bool:
    return isinstance(term, Call) and term.logic is Logic.IS_NOT_NULL


def _is_classified(expr: Expr) -> bool:
    """True for a Literal, which is not NullIntolerant in Spark, and for what certainly is; False for other functions."""
    return (
        expr.entry.is_strict_operator if isinstance(expr, Call) else isinstance(expr, Cast | Column | Literal)
    )


def _tests_column(test: Expr) -> bool:
    return isinstance(test.children[0], Column)
