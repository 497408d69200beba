"""Moves filters towards the scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from kquery_spark.expr import Expr, columns_of
from kquery_spark.expr.properties import conjunction, conjuncts, is_deterministic, is_pure
from kquery_spark.logical import Filter, Join, JoinKind, LogicalPlan, Scan
from kquery_spark.logical.filter import with_filter
from kquery_spark.logical.plan import with_new_children

# Kinds of joins that drop left rows without a match, so that a term of the ON condition can filter the left side instead.
_CONDITION_FILTERS_LEFT = (JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI)


def predicate_pushdown(plan: LogicalPlan) -> LogicalPlan:
    """Push each term of a filter as deep as possible, at best into a scan, where it prunes row groups:

        Filter: #y > 1 AND #a < #b             Filter: #a < #b
          Join: inner                     ->     Join: inner
            Projection: #x + 1 AS y, #a            Projection: #x + 1 AS y, #a
              Scan: t                                Scan: t; filters=[#x + 1 > 1]
            Scan: u                                Scan: u

    An AND is split into its terms. An OR is not; ``implied_conditions`` derives what it implies for single inputs. Each node
    says which terms pass it (``push_down``). An outer join only lets terms pass to its preserved side. Terms that can raise
    stay above joins, because a join might remove the row that raises.
    """
    return push_terms(plan, [])


def push_terms(plan: LogicalPlan, terms: Sequence[Expr]) -> LogicalPlan:
    """Return the plan with ``terms``, which are over its output, applied as deep as possible."""
    # Remove the filter and push its terms together with those from above. Its own terms come first, because it ran first.
    if isinstance(plan, Filter):
        return push_terms(plan.child, [*conjuncts(plan.condition), *terms])
    if isinstance(plan, Scan):
        return _push_into_scan(plan, terms)
    below: list[list[Expr]] = [[] for _ in plan.children]
    remaining: list[Expr] = []
    for term in terms:
        pushed = plan.push_down(term)
        if pushed is None:
            remaining.append(term)
            continue
        for filters, condition in zip(below, pushed, strict=True):
            if condition is not None:
                filters.append(condition)
    # Terms of an ON condition can move down as well.
    if isinstance(plan, Join):
        plan = _release_condition(plan, *below)
    children = [push_terms(child, filters) for child, filters in zip(plan.children, below, strict=True)]
    return with_filter(with_new_children(plan, children), remaining)


def _push_into_scan(scan: Scan, terms: Sequence[Expr]) -> LogicalPlan:
    """Push terms that read columns and are deterministic into the scan; the others remain in a filter above it."""
    filters, remaining = _split(terms, lambda term: bool(columns_of(term)) and is_deterministic(term))
    if filters:
        scan = replace(scan, filters=(*scan.filters, *filters))
    return with_filter(scan, remaining)


def _release_condition(join: Join, left: list[Expr], right: list[Expr]) -> Join:
    """Move terms of the join's own condition that read only one side to the filters of that side (``left``, ``right``).

    ``a LEFT JOIN b ON a.k = b.k AND b.y > 1`` can filter ``b`` first: a row of ``b`` that fails matches nothing. A term on
    ``a`` cannot move, because the join also outputs the rows of ``a`` that fail it.
    """
    if join.condition is None:
        return join
    filters_left, filters_right = sides_filtered_by_condition(join)
    sides: list[tuple[Set[str], list[Expr]]] = []
    if filters_left:
        sides.append((join.left.column_names, left))
    if filters_right:
        sides.append((join.right.column_names, right))
    condition: list[Expr] = []
    for term in conjuncts(join.condition):
        filters = _filters_of_side(term, sides)
        (condition if filters is None else filters).append(term)
    return replace(join, condition=conjunction(condition))


def sides_filtered_by_condition(join: Join) -> tuple[bool, bool]:
    """Return, for the left and the right side, whether a term of the ON condition can filter the side instead."""
    return join.kind in _CONDITION_FILTERS_LEFT, not (join.kind.pads_left or join.null_aware)


def _filters_of_side(term: Expr, sides: Sequence[tuple[Set[str], list[Expr]]]) -> list[Expr] | None:
    """Return the filters of the side that has all columns that the term reads; None if the term cannot filter one side."""
    names = columns_of(term)
    if not names or not is_pure(term):
        return None
    return next((filters for columns, filters in sides if names <= columns), None)


def _split(terms: Sequence[Expr], test: Callable[[Expr], bool]) -> tuple[list[Expr], list[Expr]]:
    """Return the terms that pass the test, and the others."""
    passing: list[Expr] = []
    others: list[Expr] = []
    for term in terms:
        (passing if test(term) else others).append(term)
    return passing, others
