"""Outer joins whose padded rows would be dropped anyway become inner joins."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.expr import Call, Cast, Column, Expr, InList
from kquery_spark.expr.properties import conjuncts
from kquery_spark.logical import Filter, Join, JoinKind, LogicalPlan, Projection, Sort
from kquery_spark.logical.one_row import always_one_row
from kquery_spark.logical.plan import with_new_children


def outer_to_inner(plan: LogicalPlan) -> LogicalPlan:
    """``Filter: #b > 1`` over ``a LEFT JOIN b`` makes the join an inner one: the filter drops every padded row.

    Only a condition that cannot be TRUE for a NULL counts; ``#b IS NULL`` and ``coalesce(#b, 1) = 1`` do not. Keys of an
    inner join above are such conditions, too. A left join with the one row of an aggregation without keys pads nothing.
    """
    return _visit(plan, frozenset())


def _visit(plan: LogicalPlan, present: frozenset[str]) -> LogicalPlan:
    """Rewrite, given the columns of which no NULL survives above."""
    match plan:
        case Filter():
            needed = present.union(*(_rejecting(term) for term in conjuncts(plan.condition)))
            return with_new_children(plan, [_visit(plan.child, needed)])
        case Projection():
            below = {e.expr.name for e in plan.exprs if isinstance(e.expr, Column) and e.name in present}
            return with_new_children(plan, [_visit(plan.child, frozenset(below))])
        case Sort():
            return with_new_children(plan, [_visit(plan.child, present)])
        case Join():
            return _join(plan, present)
    return with_new_children(plan, [_visit(c, frozenset()) for c in plan.children])


def _join(plan: Join, present: frozenset[str]) -> LogicalPlan:
    left_names, right_names = plan.left.column_names, plan.right.column_names
    kind = _kind_without_padding(plan, bool(present & left_names), bool(present & right_names))
    matched = _matched(plan)
    # rows of a padded side without a match are dropped, so what every match needs is present on it
    left, right = present & left_names, present & right_names
    match kind:
        case JoinKind.INNER | JoinKind.SEMI:
            left, right = left | (matched & left_names), right | (matched & right_names)
        case JoinKind.LEFT:
            right = matched & right_names
        case JoinKind.RIGHT:
            left = matched & left_names
        case JoinKind.FULL:
            left = right = frozenset()
        case _:
            right = frozenset()
    children = [_visit(plan.left, left), _visit(plan.right, right)]
    return with_new_children(plan if kind is plan.kind else replace(plan, kind=kind), children)


def _kind_without_padding(plan: Join, left_present: bool, right_present: bool) -> JoinKind:
    """The kind of the join without the padded rows that are dropped above.

    left_present, right_present: whether no row survives whose columns of that side are NULL.
    """
    kind = plan.kind
    if kind.pads_right and right_present:
        kind = JoinKind.INNER if kind is JoinKind.LEFT else JoinKind.RIGHT
    if kind.pads_left and left_present:
        kind = JoinKind.INNER if kind is JoinKind.RIGHT else JoinKind.LEFT
    if kind is JoinKind.LEFT and plan.matches_all_pairs and always_one_row(plan.right):
        kind = JoinKind.INNER
    return kind


def _matched(plan: Join) -> frozenset[str]:
    """Columns that are not NULL in a pair of rows that the join matches."""
    return frozenset[str]().union(
        *(_nulls(k.left) | _nulls(k.right) for k in plan.keys if not k.null_safe),
        *(_rejecting(term) for term in conjuncts(plan.condition)),
    )


def _rejecting(term: Expr) -> frozenset[str]:
    """Columns whose NULL makes the condition FALSE or NULL."""
    if isinstance(term, Call):
        if term.function == "and":
            return _rejecting(term.args[0]) | _rejecting(term.args[1])
        if term.function == "or":
            return _rejecting(term.args[0]) & _rejecting(term.args[1])
        if term.function == "isnotnull":
            return _nulls(term.args[0])
    return _nulls(term)


def _nulls(expr: Expr) -> frozenset[str]:
    """Columns whose NULL makes the value NULL."""
    match expr:
        case Column():
            return frozenset({expr.name})
        case Cast():
            return _nulls(expr.child)
        case InList():
            return _nulls(expr.child)
        case Call() if expr.entry.nullable == "any" and not expr.entry.operator.connective:
            return frozenset[str]().union(*(_nulls(a) for a in expr.args))
        case Call(function="and" | "or"):
            return _nulls(expr.args[0]) & _nulls(expr.args[1])
    return frozenset()
