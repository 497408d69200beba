"""Filters move towards the scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from kquery_spark.expr import Expr, columns_of
from kquery_spark.expr.properties import conjunction, conjuncts, is_deterministic, is_pure
from kquery_spark.logical import Filter, Join, JoinKind, LogicalPlan, Scan
from kquery_spark.logical.plan import with_new_children

_CONDITION_FILTERS_LEFT = (JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI)


def predicate_pushdown(plan: LogicalPlan) -> LogicalPlan:
    """``Filter(Projection(Scan))`` becomes ``Projection(Scan; filters)``.

    An AND is split and each term goes as deep as it can, an OR is not. Only the row-preserving side of an outer join takes a
    filter from above. A term that can raise stays above joins, which might remove the row that raises.
    """
    return _push(plan, [])


def _push(plan: LogicalPlan, terms: Sequence[Expr]) -> LogicalPlan:
    """The plan with ``terms`` applied to its output, as deep as possible."""
    if isinstance(plan, Filter):
        return _push(plan.child, [*conjuncts(plan.condition), *terms])
    if isinstance(plan, Scan):
        return _into_scan(plan, terms)
    below: list[list[Expr]] = [[] for _ in plan.children]
    stay: list[Expr] = []
    for term in terms:
        pushed = plan.push_down(term)
        if pushed is None:
            stay.append(term)
            continue
        for filters, condition in zip(below, pushed, strict=True):
            if condition is not None:
                filters.append(condition)
    if isinstance(plan, Join):
        plan = _release_condition(plan, *below)
    children = [_push(child, filters) for child, filters in zip(plan.children, below, strict=True)]
    return _filtered(with_new_children(plan, children), stay)


def _into_scan(scan: Scan, terms: Sequence[Expr]) -> LogicalPlan:
    filters, stay = _split(terms, lambda term: bool(columns_of(term)) and is_deterministic(term))
    if filters:
        scan = replace(scan, filters=(*scan.filters, *filters))
    return _filtered(scan, stay)


def _release_condition(join: Join, left: list[Expr], right: list[Expr]) -> Join:
    """The join without the terms of its condition that can filter one side instead, which are added to that side's."""
    if join.condition is None:
        return join
    sides: list[tuple[Set[str], list[Expr]]] = []
    if join.kind in _CONDITION_FILTERS_LEFT:
        sides.append((join.left.column_names, left))
    if join.kind not in (JoinKind.RIGHT, JoinKind.FULL) and not join.null_aware:
        sides.append((join.right.column_names, right))
    condition: list[Expr] = []
    for term in conjuncts(join.condition):
        filters = _filters_of_side(term, sides)
        (condition if filters is None else filters).append(term)
    return replace(join, condition=conjunction(condition))


def _filters_of_side(term: Expr, sides: Sequence[tuple[Set[str], list[Expr]]]) -> list[Expr] | None:
    """The filters of the side whose columns are all that the term reads; None if it cannot filter one side."""
    names = columns_of(term)
    if not names or not is_pure(term):
        return None
    return next((filters for columns, filters in sides if names <= columns), None)


def _split(terms: Sequence[Expr], test: Callable[[Expr], bool]) -> tuple[list[Expr], list[Expr]]:
    """The terms that pass the test, and the others."""
    passing = [term for term in terms if test(term)]
    return passing, [term for term in terms if term not in passing]


def _filtered(plan: LogicalPlan, terms: list[Expr]) -> LogicalPlan:
    condition = conjunction(terms)
    return plan if condition is None else Filter(plan, condition)
