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
from kquery_spark.optimizer.selectivity import selectivity
from kquery_spark.optimizer.statistics import Estimator

_MAX_NODES = 2000  # a larger OR is left alone, because it is searched once for each input
# The input with the most bytes gets a derived condition only if at most this share of rows passes, or if splits are pruned.
_MAX_SHARE_OF_LARGEST = 0.25


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
    input. If a side has no such term, the OR implies nothing for this input. If the original condition is TRUE, one of its
    sides is TRUE, and with it all terms of that side, so the derived condition is TRUE, too, whatever else is NULL. The
    original condition stays, because the derived ones do not imply it.

    The rule looks for ORs in the conditions of joins and in the filters directly above them. An input gets a filter only if
    pushdown could move a term from the same place to it: for an outer join, from a filter above it to the preserved side,
    and from the join's own condition to its null-supplying side. Each term becomes part of at most one derived condition, so
    all derived conditions together are no larger than the original.

    The input with the most bytes usually probes the others, whose keys filter its scan at run time. A derived condition on
    it has to be selective or rule out splits, because the scan evaluates it before the keys: it decodes the columns of the
    condition also for rows that the keys would drop.

    If a condition next to the OR can raise an error, no filter is derived, because this condition would then see fewer rows.
    Spark derives these conditions in PushExtraPredicateThroughJoin, but not from a filter above an outer join. For such a
    filter, this rule also requires that no expression below it can raise.
    """
    return _Derivation().rewrite(plan)


class _Derivation:
    """One run of the rule over a plan, which caches the estimates."""

    def __init__(self) -> None:
        self._estimator = Estimator()

    def rewrite(self, plan: LogicalPlan) -> LogicalPlan:
        """Derive filters for the inputs of all joins, from the top of the plan down."""
        if isinstance(plan, Filter) and isinstance(plan.child, Join):
            return with_new_children(plan, [self._rewrite_join(plan.child, conjuncts(plan.condition))])
        if isinstance(plan, Join):
            return self._rewrite_join(plan, [])
        return with_new_children(plan, list(map(self.rewrite, plan.children)))

    def _rewrite_join(self, join: Join, above: Sequence[Expr]) -> LogicalPlan:
        """Filter the inputs below a join, and rewrite them. above: the terms of the filter directly above the join."""
        sides = [self._filter_side(join, side, terms) for side, terms in _terms_for_sides(join, above)]
        return with_new_children(join, list(map(self.rewrite, sides)))

    def _filter_side(self, join: Join, side: LogicalPlan, terms: Sequence[Expr]) -> LogicalPlan:
        if not terms:
            return side
        largest = max(self._scanned(plan) for plan in _inputs(join))
        return self._filter_inputs(side, terms, largest)

    def _filter_inputs(self, plan: LogicalPlan, terms: Sequence[Expr], largest: float) -> LogicalPlan:
        """Filter the inputs of a join by what the terms imply. largest: the bytes that its largest input scans."""
        if isinstance(plan, Filter):
            return with_new_children(plan, [self._filter_inputs(plan.child, terms, largest)])
        if isinstance(plan, Join):
            sides = zip(plan.children, plan.sides_filtered_from_above, strict=True)
            filtered = [
                self._filter_inputs(s, terms, largest) if is_filtered else s for s, is_filtered in sides
            ]
            return with_new_children(plan, filtered)
        derived = [x for x in _implied_terms(terms, plan.column_names) if not _has_filter(plan, x)]
        if self._scanned(plan) >= largest > 0:
            derived = [x for x in derived if _share(x) <= _MAX_SHARE_OF_LARGEST or self._prunes(plan, x)]
        return push_terms(plan, derived) if derived else plan

    def _prunes(self, plan: LogicalPlan, term: Expr) -> bool:
        """True if the term, by statistics or partition values, rules out parts of the plan's scans."""
        return self._scanned(push_terms(plan, [term])) < self._scanned(plan)

    def _scanned(self, plan: LogicalPlan) -> float:
        """Return the estimated bytes that the scans of a plan read."""
        return self._estimator.estimate(plan).scanned


def _inputs(plan: LogicalPlan) -> list[LogicalPlan]:
    """Return the inputs of the tree of joins and filters at the top of a plan."""
    if isinstance(plan, Filter | Join):
        return [node for child in plan.children for node in _inputs(child)]
    return [plan]


def _share(term: Expr) -> float:
    """Return the expected share of rows that pass a term: for an OR, the sum over its sides."""
    return sum(map(selectivity, disjuncts(term)))


def _terms_for_sides(join: Join, above: Sequence[Expr]) -> list[tuple[LogicalPlan, list[Expr]]]:
    """Return each side of a join with the ORs, from the join's condition and the filter above, that may filter it."""
    condition = conjuncts(join.condition)
    if not all(map(is_pure, (*above, *condition))):
        return [(side, []) for side in join.children]
    if join.kind is not JoinKind.INNER and _can_raise_below(join):
        above = []
    sides = []
    for side, takes_above, takes_own in zip(
        join.children, join.sides_filtered_from_above, sides_filtered_by_condition(join), strict=True
    ):
        terms = [*(above if takes_above else ()), *(condition if takes_own else ())]
        sides.append((side, list(filter(_is_small_or, terms))))
    return sides


def _can_raise_below(plan: LogicalPlan) -> bool:
    return any(can_raise(expr) for node in walk_plan(plan) for expr in node.expressions)


def _is_small_or(term: Expr) -> bool:
    """True if the term is an OR of at most ``_MAX_NODES`` nodes."""
    return _has_logic(term, Logic.OR) and not any(True for _ in islice(walk(term), _MAX_NODES, None))


def _implied_terms(conditions: Sequence[Expr], names: Set[str]) -> list[Expr]:
    """Return the terms that the conditions imply for these columns, in normal form and without repetitions."""
    implied = [_implied_condition(condition, names) for condition in conditions]
    terms = [term for x in implied if x is not None for term in conjuncts(normal_condition(x))]
    return list(dict.fromkeys(filter(columns_of, terms)))


def _implied_condition(condition: Expr, names: Set[str]) -> Expr | None:
    """Return the strongest condition over these columns that is TRUE whenever ``condition`` is; None if there is none.

    AND and OR are monotonic: if a term of an AND is replaced by TRUE, the AND is TRUE for at least the same rows.
    """
    if _has_logic(condition, Logic.AND):
        terms = [_implied_condition(term, names) for term in conjuncts(condition)]
        return conjunction([term for term in terms if term is not None])
    if _has_logic(condition, Logic.OR):
        sides = [_implied_condition(side, names) for side in disjuncts(condition)]
        implied = [side for side in sides if side is not None]
        return chain("or", implied) if len(implied) == len(sides) else None
    columns = columns_of(condition)
    return condition if columns and columns <= names else None


def _has_logic(expr: Expr, logic: Logic) -> bool:
    return isinstance(expr, Call) and expr.logic is logic


def _has_filter(plan: LogicalPlan, term: Expr) -> bool:
    """True if the plan already filters its rows by the term: Spark or another frontend may have derived it."""
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
