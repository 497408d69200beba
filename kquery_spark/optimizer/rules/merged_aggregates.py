"""Aggregations of one row each, side by side over the same tables, become one with conditions of its calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from kquery_spark.expr import AggregateCall, Call, Column, Expr, Named, columns_of, substitute, transform
from kquery_spark.expr.properties import chain, conjunction, conjuncts, is_pure
from kquery_spark.logical import Aggregate, Filter, Join, JoinKind, LogicalPlan, Projection, Scan
from kquery_spark.logical.plan import fresh_name, with_new_children
from kquery_spark.logical.projection import same_columns


def merged_aggregates(plan: LogicalPlan) -> LogicalPlan:
    """``(SELECT count(*) FROM t WHERE a) CROSS JOIN (SELECT sum(x) FROM t WHERE b)`` becomes
    ``SELECT count(*) FILTER (WHERE a), sum(x) FILTER (WHERE b) FROM t WHERE a OR b``.

    Both may join the same tables by the same conditions. Conditions that they do not share must be about one of the tables,
    so that all of them together are still a filter of its scan; scalar subqueries are such pairs once they are joins.
    """
    if not _crosses(plan):
        return with_new_children(plan, [merged_aggregates(c) for c in plan.children])
    inputs = [merged_aggregates(i) for i in _inputs(plan)]
    merged = _merge_equal(inputs)
    return (
        _over(plan, iter(inputs))
        if len(merged) == len(inputs)
        else same_columns(reduce(_cross, merged), plan)
    )


@dataclass(frozen=True)
class _Tree:
    """Inner joins taken apart: the scans, all conditions and the output columns; columns of the n-th scan are ``n.name``."""

    scans: tuple[Scan, ...]
    terms: tuple[Expr, ...]
    columns: dict[str, Expr]

    def of(self, expr: Expr) -> Expr:
        """An expression over the output columns, over those of the scans."""
        return substitute(expr, self.columns)

    def with_terms(self, terms: Sequence[Expr]) -> _Tree:
        """The tree with more conditions, which are over its output columns."""
        return replace(self, terms=(*self.terms, *map(self.of, terms)))


@dataclass(frozen=True)
class _Member:
    """An input of one row: ``outputs`` over ``calls``, by name, over a tree of inner joins."""

    scans: tuple[Scan, ...]
    terms: tuple[Expr, ...]
    calls: dict[str, Expr]
    outputs: tuple[Named, ...]

    @property
    def is_distinct(self) -> bool:
        """Whether a call must see its rows together, which rows of other calls would be among."""
        return any(isinstance(c, AggregateCall) and c.is_distinct for c in self.calls.values())

    def is_as(self, other: _Member) -> bool:
        """Whether both compute the same."""
        own, others = ({*m.terms, *m.calls.values()} for m in (self, other))
        return own == others


def _crosses(plan: LogicalPlan) -> bool:
    return isinstance(plan, Join) and plan.kind is JoinKind.INNER and plan.matches_all_pairs


def _cross(left: LogicalPlan, right: LogicalPlan) -> LogicalPlan:
    return Join(left, right, JoinKind.INNER)


def _inputs(plan: LogicalPlan) -> list[LogicalPlan]:
    """The inputs of a tree of cross joins, left to right."""
    return [i for c in plan.children for i in _inputs(c)] if _crosses(plan) else [plan]


def _over(plan: LogicalPlan, inputs: Iterator[LogicalPlan]) -> LogicalPlan:
    """The tree of cross joins over other inputs."""
    return (
        with_new_children(plan, [_over(c, inputs) for c in plan.children]) if _crosses(plan) else next(inputs)
    )


def _merge_equal(inputs: list[LogicalPlan]) -> list[LogicalPlan]:
    """The inputs, those that can be one being one, in the place of the first of them."""
    groups: list[tuple[LogicalPlan, list[_Member]]] = []
    for plan in inputs:
        member = _member(plan)
        if member is None or not any(_add_alike(members, member) for _, members in groups):
            groups.append((plan, [] if member is None else [member]))
    return [plan if len(members) < 2 else _merged(members) for plan, members in groups]


def _add_alike(members: list[_Member], member: _Member) -> bool:
    """Add a member to those that it can be one with; False where it can not."""
    alike = _renumbered(member, members[0].scans) if members else None
    if alike is None:
        return False
    if not alike.is_as(members[0]):
        if alike.is_distinct or members[0].is_distinct or not _differ_in_one_scan([*members, alike]):
            return False
    members.append(alike)
    return True


def _member(plan: LogicalPlan) -> _Member | None:
    """A plan of one row over inner joins of scans; None for others and those to which it matters which rows they see."""
    below = plan.child if isinstance(plan, Projection) else plan
    if not isinstance(below, Aggregate) or below.keys:
        return None
    tree = _tree(below.child)
    if tree is None:
        return None
    calls = {a.name: tree.of(a.expr) for a in below.aggregates}
    if not all(map(is_pure, (*tree.terms, *calls.values()))):
        return None
    own = tuple(Named(a.column, a.name) for a in below.aggregates)
    outputs = plan.exprs if isinstance(plan, Projection) else own
    return _Member(tree.scans, tuple(map(_ordered, tree.terms)), calls, outputs)


def _tree(plan: LogicalPlan, first: int = 0) -> _Tree | None:
    """A tree of inner joins whose scans are numbered from ``first``; None for other plans."""
    match plan:
        case Scan():
            bare = replace(plan, projection=None, filters=())
            columns: dict[str, Expr] = {n: _numbered(bare, n, first) for n in bare.schema.names}
            return _Tree((bare,), tuple(substitute(f, columns) for f in plan.filters), columns)
        case Projection():
            below = _tree(plan.child, first)
            return below and replace(below, columns={e.name: below.of(e.expr) for e in plan.exprs})
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
    """A column of the scan of that number."""
    return replace(scan.column(name), name=f"{number}.{name}")


def _ordered(term: Expr) -> Expr:
    """A condition whose equalities have their sides in an order that does not depend on how they were written."""
    return transform(term, _sorted_sides)


def _sorted_sides(expr: Expr) -> Expr:
    if isinstance(expr, Call) and expr.entry.operator.flipped == expr.function:
        return expr.with_children(sorted(expr.args, key=str))
    return expr


def _scans_of(expr: Expr) -> set[int]:
    """The numbers of the scans that an expression reads."""
    return {int(name.partition(".")[0]) for name in columns_of(expr)}


def _renumbered(member: _Member, scans: Sequence[Scan]) -> _Member | None:
    """The member with its scans in the order of others of the same sources; None where the sources differ."""
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
    terms = tuple(_ordered(substitute(e, columns)) for e in member.terms)
    calls = {name: substitute(call, columns) for name, call in member.calls.items()}
    return replace(member, scans=tuple(scans), terms=terms, calls=calls)


def _common(members: Sequence[_Member]) -> frozenset[Expr]:
    """The conditions that all members have."""
    return frozenset.intersection(*(frozenset(m.terms) for m in members))


def _differ_in_one_scan(members: Sequence[_Member]) -> bool:
    common = _common(members)
    reads = [_scans_of(e) for m in members for e in m.terms if e not in common]
    return all(len(r) == 1 for r in reads) and len(set().union(*reads)) <= 1


def _merged(members: Sequence[_Member]) -> LogicalPlan:
    """One aggregation that has every member's calls, and every member's outputs over it."""
    common = _common(members)
    own = [conjunction([e for e in m.terms if e not in common]) for m in members]
    calls: dict[Expr, Named] = {}
    outputs: list[Named] = []
    for member, condition in zip(members, own, strict=True):
        columns: dict[str, Expr] = {}
        for name, call in member.calls.items():
            columns[name] = _output_of(_filtered(call, condition), name, calls).column
        outputs += [Named(substitute(e.expr, columns), e.name) for e in member.outputs]
    terms = [*(e for e in members[0].terms if e in common), *_either(own)]
    return Projection(_aggregate(members[0].scans, terms, list(calls.values())), tuple(outputs))


def _output_of(call: Expr, name: str, calls: dict[Expr, Named]) -> Named:
    """The call's output among ``calls``, added under about this name if it is not there yet."""
    if call not in calls:
        calls[call] = Named(call, fresh_name(name, [n.name for n in calls.values()]))
    return calls[call]


def _either(conditions: Sequence[Expr | None]) -> list[Expr]:
    """The condition that rows of any member meet; none where a member takes all rows."""
    conditions = list(dict.fromkeys(conditions))
    given = [e for e in conditions if e is not None]
    return [chain("or", given)] if len(given) == len(conditions) else []


def _filtered(call: Expr, condition: Expr | None) -> Expr:
    """An aggregate call that takes rows of the condition only."""
    if condition is None or not isinstance(call, AggregateCall):
        return call
    return replace(call, condition=conjunction([condition, *conjuncts(call.condition)]))


def _aggregate(scans: Sequence[Scan], terms: Sequence[Expr], calls: Sequence[Named]) -> LogicalPlan:
    """The aggregation over the scans' cross join, their columns by names that are no numbers."""
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
    condition = conjunction([substitute(e, columns) for e in terms])
    filtered = joined if condition is None else Filter(joined, condition)
    return Aggregate(filtered, (), tuple(Named(substitute(c.expr, columns), c.name) for c in calls))
