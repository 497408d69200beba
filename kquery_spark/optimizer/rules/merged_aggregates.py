"""Merges one-row aggregations over the same tables, so that the tables are read once.

Queries that compute several totals side by side (TPC-DS 9, 28, 88) are cross joins of aggregations without GROUP BY. If
they read the same tables with the same join conditions, one aggregation can compute all totals, each with its own FILTER:

    SELECT * FROM (SELECT count(*) FROM t WHERE k = 1) CROSS JOIN (SELECT sum(x) FROM t WHERE k = 2)
    ->  SELECT count(*) FILTER (WHERE k = 1), sum(x) FILTER (WHERE k = 2) FROM t WHERE k = 1 OR k = 2

To compare two inputs, each is rewritten in a form that does not depend on names: its inner joins are taken apart into scans
and conditions, and column ``name`` of scan number n is called ``n.name``. Two inputs can be merged if their scans have the
same sources (in any order). What they compute is compared as sets of conditions and calls:

- Conditions that all inputs have become the conditions of the merged aggregation.
- The other conditions become the FILTER of the input's calls. All of them have to read the same single scan. Then their
  disjunction (``k = 1 OR k = 2``) is a filter of that scan, so that pushdown and pruning work as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from kquery_spark.expr import AggregateCall, Call, Column, Expr, Named, columns_of, substitute, transform
from kquery_spark.expr.properties import chain, conjunction, conjuncts, is_pure
from kquery_spark.logical import Aggregate, Filter, Join, JoinKind, LogicalPlan, Projection, Scan
from kquery_spark.logical.filter import with_filter
from kquery_spark.logical.plan import fresh_name, with_new_children
from kquery_spark.logical.projection import with_columns_of


def merged_aggregates(plan: LogicalPlan) -> LogicalPlan:
    """Merge the inputs of cross joins where possible; see the example at the top of this module.

    Uncorrelated scalar subqueries are such inputs as well: ``subquery_to_join`` has made them cross joins.
    """
    if not _is_cross_join(plan):
        return with_new_children(plan, [merged_aggregates(c) for c in plan.children])
    inputs = [merged_aggregates(i) for i in _inputs(plan)]
    merged = _merge_equal(inputs)
    return (
        _replace_inputs(plan, iter(inputs))
        if len(merged) == len(inputs)
        else with_columns_of(reduce(_cross, merged), plan)
    )


@dataclass(frozen=True)
class _Tree:
    """A tree of inner joins taken apart.

    ``terms`` are all of its conditions, join keys included. ``columns`` are its output columns, by name. Both are
    expressions over the columns of the scans, where ``n.name`` is the column ``name`` of the scan number n.
    """

    scans: tuple[Scan, ...]
    terms: tuple[Expr, ...]
    columns: dict[str, Expr]

    def over_scans(self, expr: Expr) -> Expr:
        """Express ``expr``, which is over the output columns, over the columns of the scans."""
        return substitute(expr, self.columns)

    def with_terms(self, terms: Sequence[Expr]) -> _Tree:
        """Add conditions over the output columns to the tree."""
        return replace(self, terms=(*self.terms, *map(self.over_scans, terms)))


@dataclass(frozen=True)
class _Member:
    """An input of the cross join that can be merged: a projection (``outputs``) over aggregate ``calls`` over inner joins.

    The calls and terms read columns of the scans (``n.name``); the outputs read the calls by name.
    """

    scans: tuple[Scan, ...]
    terms: tuple[Expr, ...]
    calls: dict[str, Expr]
    outputs: tuple[Named, ...]

    @property
    def is_distinct(self) -> bool:
        """True if the member has a DISTINCT call, which cannot share its rows with the calls of other members."""
        return any(isinstance(c, AggregateCall) and c.is_distinct for c in self.calls.values())

    def computes_same_as(self, other: _Member) -> bool:
        """True if both members have the same conditions and calls."""
        own, others = ({*m.terms, *m.calls.values()} for m in (self, other))
        return own == others


def _is_cross_join(plan: LogicalPlan) -> bool:
    return isinstance(plan, Join) and plan.kind is JoinKind.INNER and plan.matches_all_pairs


def _cross(left: LogicalPlan, right: LogicalPlan) -> LogicalPlan:
    return Join(left, right, JoinKind.INNER)


def _inputs(plan: LogicalPlan) -> list[LogicalPlan]:
    """Return the inputs of a tree of cross joins, left to right."""
    return [i for c in plan.children for i in _inputs(c)] if _is_cross_join(plan) else [plan]


def _replace_inputs(plan: LogicalPlan, inputs: Iterator[LogicalPlan]) -> LogicalPlan:
    """Return the tree of cross joins with other inputs, which are taken left to right."""
    return (
        with_new_children(plan, [_replace_inputs(c, inputs) for c in plan.children])
        if _is_cross_join(plan)
        else next(inputs)
    )


def _merge_equal(inputs: list[LogicalPlan]) -> list[LogicalPlan]:
    """Merge the inputs that can be merged. A merged input takes the position of its first member."""
    groups: list[tuple[LogicalPlan, list[_Member]]] = []
    for plan in inputs:
        member = _member(plan)
        if member is None or not any(_add_if_mergeable(members, member) for _, members in groups):
            groups.append((plan, [] if member is None else [member]))
    return [plan if len(members) < 2 else _merge_members(members) for plan, members in groups]


def _add_if_mergeable(members: list[_Member], member: _Member) -> bool:
    """Add ``member`` to ``members`` if it can be merged with all of them; return whether it was added."""
    alike = _renumber_scans(member, members[0].scans) if members else None
    if alike is None:
        return False
    if not alike.computes_same_as(members[0]):
        if alike.is_distinct or members[0].is_distinct or not _differ_in_one_scan([*members, alike]):
            return False
    members.append(alike)
    return True


def _member(plan: LogicalPlan) -> _Member | None:
    """Return the plan as a member; None if it is not a pure one-row aggregation over inner joins of scans."""
    below = plan.child if isinstance(plan, Projection) else plan
    if not isinstance(below, Aggregate) or below.keys:
        return None
    tree = _tree(below.child)
    if tree is None:
        return None
    calls = {a.name: tree.over_scans(a.expr) for a in below.aggregates}
    if not all(map(is_pure, (*tree.terms, *calls.values()))):
        return None
    own = tuple(Named(a.column, a.name) for a in below.aggregates)
    outputs = plan.exprs if isinstance(plan, Projection) else own
    return _Member(tree.scans, tuple(map(_with_sorted_operands, tree.terms)), calls, outputs)


def _tree(plan: LogicalPlan, first: int = 0) -> _Tree | None:
    """Take a tree of inner joins apart; its scans are numbered from ``first``. None for other plans."""
    match plan:
        case Scan():
            bare = replace(plan, projection=None, filters=())
            columns: dict[str, Expr] = {n: _numbered(bare, n, first) for n in bare.schema.names}
            return _Tree((bare,), tuple(substitute(f, columns) for f in plan.filters), columns)
        case Projection():
            below = _tree(plan.child, first)
            return below and replace(below, columns={e.name: below.over_scans(e.expr) for e in plan.exprs})
        case Filter():
            below = _tree(plan.child, first)
            return below and below.with_terms(conjuncts(plan.condition))
        case Join(kind=JoinKind.INNER):
            return _joined_tree(plan, first)
    return None


def _joined_tree(plan: Join, first: int) -> _Tree | None:
    left = _tree(plan.left, first)
    right = left and _tree(plan.right, first + len(left.scans))
    if left is None or right is None:
        return None
    both = _Tree(left.scans + right.scans, left.terms + right.terms, {**left.columns, **right.columns})
    keys = [Call.of("eq_null_safe" if k.null_safe else "eq", k.left, k.right) for k in plan.keys]
    return both.with_terms([*keys, *conjuncts(plan.condition)])


def _numbered(scan: Scan, name: str, number: int) -> Column:
    """Return the column ``name`` of the scan, called ``number.name``."""
    return replace(scan.column(name), name=f"{number}.{name}")


def _with_sorted_operands(term: Expr) -> Expr:
    """Sort the operands of equalities and other symmetric operators, so that ``a = b`` equals ``b = a``."""
    return transform(term, _sorted_sides)


def _sorted_sides(expr: Expr) -> Expr:
    if isinstance(expr, Call) and expr.entry.operator.flipped == expr.function:
        return expr.with_children(sorted(expr.args, key=str))
    return expr


def _scans_of(expr: Expr) -> set[int]:
    """Return the numbers of the scans whose columns the expression reads."""
    return {int(name.partition(".")[0]) for name in columns_of(expr)}


def _renumber_scans(member: _Member, scans: Sequence[Scan]) -> _Member | None:
    """Renumber the member's scans in the order of ``scans``; None if the two do not read the same sources."""
    if len(member.scans) != len(scans):
        return None
    free = dict(enumerate(member.scans))
    columns: dict[str, Expr] = {}
    for number, scan in enumerate(scans):
        same = next((n for n, own in free.items() if own.source == scan.source), None)
        if same is None:
            return None
        del free[same]
        columns |= {f"{same}.{n}": _numbered(scan, n, number) for n in scan.schema.names}
    terms = tuple(_with_sorted_operands(substitute(e, columns)) for e in member.terms)
    calls = {name: substitute(call, columns) for name, call in member.calls.items()}
    return replace(member, scans=tuple(scans), terms=terms, calls=calls)


def _common_terms(members: Sequence[_Member]) -> frozenset[Expr]:
    """Return the conditions that all members have."""
    return frozenset.intersection(*(frozenset(m.terms) for m in members))


def _differ_in_one_scan(members: Sequence[_Member]) -> bool:
    """True if all conditions that not all members have read the same single scan."""
    common = _common_terms(members)
    reads = [_scans_of(e) for m in members for e in m.terms if e not in common]
    return all(len(r) == 1 for r in reads) and len(set().union(*reads)) <= 1


def _merge_members(members: Sequence[_Member]) -> LogicalPlan:
    """Return one aggregation with the calls of all members, and a projection with the outputs of all members above it."""
    common = _common_terms(members)
    own = [conjunction([e for e in m.terms if e not in common]) for m in members]
    calls: dict[Expr, Named] = {}
    outputs: list[Named] = []
    for member, condition in zip(members, own, strict=True):
        columns: dict[str, Expr] = {}
        for name, call in member.calls.items():
            columns[name] = _output_of(_with_filter_condition(call, condition), name, calls).column
        outputs += [Named(substitute(e.expr, columns), e.name) for e in member.outputs]
    # The common conditions, in the order of the first member, and the disjunction of the members' own conditions.
    terms = [*(e for e in members[0].terms if e in common), *_disjunction_of_own_conditions(own)]
    return Projection(_aggregate(members[0].scans, terms, list(calls.values())), tuple(outputs))


def _output_of(call: Expr, name: str, calls: dict[Expr, Named]) -> Named:
    """Return the output of ``call`` among ``calls``; add it under (about) this name if it is not there yet."""
    if call not in calls:
        calls[call] = Named(call, fresh_name(name, [n.name for n in calls.values()]))
    return calls[call]


def _disjunction_of_own_conditions(conditions: Sequence[Expr | None]) -> list[Expr]:
    """Return the disjunction of the members' own conditions; an empty list if a member has none, as it needs all rows."""
    conditions = list(dict.fromkeys(conditions))
    given = [e for e in conditions if e is not None]
    return [chain("or", given)] if len(given) == len(conditions) else []


def _with_filter_condition(call: Expr, condition: Expr | None) -> Expr:
    """Add the condition to the FILTER of an aggregate call."""
    if condition is None or not isinstance(call, AggregateCall):
        return call
    return replace(call, condition=conjunction([condition, *conjuncts(call.condition)]))


def _aggregate(scans: Sequence[Scan], terms: Sequence[Expr], calls: Sequence[Named]) -> LogicalPlan:
    """Return the aggregation over a cross join of the scans. Columns get ordinary, unique names instead of ``n.name``.

    Later rules push the filter down and make keys of its equalities.
    """
    needed = columns_of(*terms, *(c.expr for c in calls))
    columns: dict[str, Column] = {}
    sides: list[LogicalPlan] = []
    for i, scan in enumerate(scans):
        exprs = []
        for name in scan.schema.names:
            if f"{i}.{name}" in needed:
                one = Named(scan.column(name), fresh_name(name, [c.name for c in columns.values()]))
                exprs.append(one)
                columns[f"{i}.{name}"] = one.column
        sides.append(Projection(scan, tuple(exprs)))
    joined = reduce(_cross, sides)
    filtered = with_filter(joined, [substitute(e, columns) for e in terms])
    return Aggregate(filtered, (), tuple(Named(substitute(c.expr, columns), c.name) for c in calls))
