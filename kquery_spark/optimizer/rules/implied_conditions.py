"""Derives filters for single inputs of joins from an OR that reads several inputs."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import islice

from kquery_spark.expr import Call, Expr, InList, columns_of, walk
from kquery_spark.expr.properties import can_raise, chain, conjunction, conjuncts, is_pure
from kquery_spark.functions.sql_form import Logic
from kquery_spark.logical import Filter, Join, JoinKind, LogicalPlan, Scan, walk_plan
from kquery_spark.logical.plan import with_new_children
from kquery_spark.optimizer.normal_conditions import disjuncts, normal_condition
from kquery_spark.optimizer.rules.predicate_pushdown import push_terms, sides_filtered_by_condition

_MAX_NODES = 2000  # a larger OR is left alone, because it is searched once for each input


def implied_conditions(plan: LogicalPlan) -> LogicalPlan:
    """Filter each input of a join by what an OR over several inputs implies for it:

        Join: inner, condition=(#a = 1 AND #x = 2) OR (#a = 3 AND #x > 4)
          Scan: t
          Scan: u
        ->
        Join: inner, condition=(#a = 1 AND #x = 2) OR (#a = 3 AND #x > 4)
          Scan: t; filters=[#a IN (1, 3)]
          Scan: u; filters=[#x = 2 OR #x > 4]

    The condition of an input is the OR over all sides of the original OR, each reduced to the terms that read only this
    input; a side without such a term gives no condition. If the original condition is TRUE, one of its sides is TRUE, and
    with it all terms of that side, so the derived condition is TRUE, too, whatever else is NULL. The original condition
    stays, because the derived ones do not imply it.

    Sources are the conditions of joins and the filters directly above them. An input gets a filter only if pushdown would
    move a term of this source there: never on the padded side of an outer join. Each term becomes part of one derived
    condition at most, so all derived conditions together are no larger than the original.

    If a condition next to the OR can raise an error, no filter is derived, because this condition would then see fewer rows.
    Spark derives these conditions in PushExtraPredicateThroughJoin, but not from a filter above an outer join. There, no
    expression below may raise either.
    """
    if isinstance(plan, Filter) and isinstance(plan.child, Join):
        return with_new_children(plan, [_visit_join(plan.child, conjuncts(plan.condition))])
    if isinstance(plan, Join):
        return _visit_join(plan, [])
    return with_new_children(plan, list(map(implied_conditions, plan.children)))


def _visit_join(join: Join, above: Sequence[Expr]) -> LogicalPlan:
    """Filter the inputs below a join, and visit them. above: the terms of the filter directly above the join."""
    condition = conjuncts(join.condition)
    children = list(join.children)
    if all(map(is_pure, (*above, *condition))):
        if join.kind is not JoinKind.INNER and _can_raise_below(join):
            above = []
        passes = zip(_sides_filtered_from_above(join), sides_filtered_by_condition(join), strict=True)
        for index, (from_above, by_condition) in enumerate(passes):
            terms = [*(above if from_above else []), *(condition if by_condition else [])]
            children[index] = _filter_inputs(children[index], list(filter(_is_searched, terms)))
    return with_new_children(join, list(map(implied_conditions, children)))


def _sides_filtered_from_above(join: Join) -> tuple[bool, bool]:
    """Return, for the left and the right side, whether a filter above the join can filter the side instead."""
    return not join.kind.pads_left, join.kind in (JoinKind.INNER, JoinKind.RIGHT)


def _can_raise_below(plan: LogicalPlan) -> bool:
    return any(can_raise(expr) for node in walk_plan(plan) for expr in node.expressions)


def _is_searched(term: Expr) -> bool:
    """True if the term is an OR that is not too large."""
    return _has_logic(term, Logic.OR) and not any(True for _ in islice(walk(term), _MAX_NODES, None))


def _filter_inputs(plan: LogicalPlan, terms: Sequence[Expr]) -> LogicalPlan:
    """Filter the inputs of the joins at the top of a plan by what the terms, which read other inputs as well, imply."""
    if not terms:
        return plan
    if isinstance(plan, Filter):
        return with_new_children(plan, [_filter_inputs(plan.child, terms)])
    if isinstance(plan, Join):
        sides = zip(plan.children, _sides_filtered_from_above(plan), strict=True)
        return with_new_children(plan, [_filter_inputs(s, terms) if passes else s for s, passes in sides])
    derived: list[Expr] = []
    for term in terms:
        implied = _implied_condition(term, plan.column_names)
        if implied is not None:
            derived.extend(x for x in conjuncts(normal_condition(implied)) if columns_of(x))
    added = [x for x in dict.fromkeys(derived) if not _has_filter(plan, x)]
    return push_terms(plan, added) if added else plan


def _implied_condition(condition: Expr, names: Set[str]) -> Expr | None:
    """Return the strongest condition over these columns that is TRUE whenever ``condition`` is; None if there is none.

    AND and OR are monotonic: if a term of an AND is replaced by TRUE, the AND is TRUE for at least the same rows.
    """
    if _has_logic(condition, Logic.AND):
        terms = [_implied_condition(term, names) for term in conjuncts(condition)]
        return conjunction([term for term in terms if term is not None])
    if _has_logic(condition, Logic.OR):
        sides = [_implied_condition(side, names) for side in disjuncts(condition)]
        known = [side for side in sides if side is not None]
        return chain("or", known) if len(known) == len(sides) else None
    columns = columns_of(condition)
    return condition if columns and columns <= names else None


def _has_logic(expr: Expr, logic: Logic) -> bool:
    return isinstance(expr, Call) and expr.logic is logic


def _has_filter(plan: LogicalPlan, term: Expr) -> bool:
    """True if the plan filters its rows by the term already: Spark and other frontends may have derived it."""
    if isinstance(plan, Filter):
        return any(_is_same(term, x) for x in conjuncts(plan.condition)) or _has_filter(plan.child, term)
    if isinstance(plan, Scan):
        return any(_is_same(term, x) for x in plan.filters)
    pushed = plan.push_down(term)
    if pushed is None:
        return False
    below = [(child, x) for child, x in zip(plan.children, pushed, strict=True) if x is not None]
    return bool(below) and all(_has_filter(child, x) for child, x in below)


def _is_same(left: Expr, right: Expr) -> bool:
    """True if the conditions are equal, apart from the order of the values of an IN."""
    if isinstance(left, InList) and isinstance(right, InList):
        return left.child == right.child and set(left.values) == set(right.values)
    return left == right
