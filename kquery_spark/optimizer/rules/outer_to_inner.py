"""Turns outer joins into inner joins if a filter above drops all rows that the outer join pads with NULLs."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.expr import Call, Cast, Column, Expr, InList
from kquery_spark.expr.properties import conjuncts
from kquery_spark.functions.nullability import Nullability
from kquery_spark.functions.sql_form import Logic
from kquery_spark.logical import Filter, Join, JoinKind, LogicalPlan, Projection, Sort
from kquery_spark.logical.one_row import always_one_row
from kquery_spark.logical.plan import with_new_children


def outer_to_inner(plan: LogicalPlan) -> LogicalPlan:
    """Turn ``Filter: b.y > 1`` over ``a LEFT JOIN b`` into the same filter over ``a JOIN b``.

    Rows of ``a`` without a match have NULL in ``b.y``, for which ``b.y > 1`` is not TRUE. A condition such as ``b.y IS
    NULL`` or ``coalesce(b.y, 1) = 1`` can be TRUE for them, so it does not count. Keys of an inner join above reject NULLs,
    too. A left join with a plan of exactly one row (an aggregation without keys) has no rows without a match, so it becomes
    an inner join.

    The rule walks down with the set of columns whose NULLs are rejected somewhere above.
    """
    return _visit(plan, frozenset())


def _visit(plan: LogicalPlan, not_null: frozenset[str]) -> LogicalPlan:
    """Rewrite the plan. not_null: output columns for which rows with a NULL are dropped above."""
    match plan:
        case Filter():
            rejected = not_null.union(*(_null_rejecting_columns(term) for term in conjuncts(plan.condition)))
            return with_new_children(plan, [_visit(plan.child, rejected)])
        case Projection():
            below = {e.expr.name for e in plan.exprs if isinstance(e.expr, Column) and e.name in not_null}
            return with_new_children(plan, [_visit(plan.child, frozenset(below))])
        case Sort():
            return with_new_children(plan, [_visit(plan.child, not_null)])
        case Join():
            return _visit_join(plan, not_null)
    return with_new_children(plan, [_visit(c, frozenset()) for c in plan.children])


def _visit_join(plan: Join, not_null: frozenset[str]) -> LogicalPlan:
    left_names, right_names = plan.left.column_names, plan.right.column_names
    kind = _kind_without_padding(plan, bool(not_null & left_names), bool(not_null & right_names))
    matched = _columns_not_null_in_matches(plan)
    # For each input, collect the columns for which rows with a NULL cannot reach the result:
    # - If the join drops rows of this side without a match: the columns that are rejected above the join, and the columns
    #   that are never NULL in a match. An outer join has only the latter: with the former, it would be an inner join by now.
    # - If the join preserves this side, its rows pass even without a match: only the columns that are rejected above.
    left, right = not_null & left_names, not_null & right_names
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
            right = frozenset()  # ANTI, EXISTENCE: nothing above depends on values of the right side
    children = [_visit(plan.left, left), _visit(plan.right, right)]
    return with_new_children(plan if kind is plan.kind else replace(plan, kind=kind), children)


def _kind_without_padding(plan: Join, left_not_null: bool, right_not_null: bool) -> JoinKind:
    """Return the kind of the join without padding that is dropped above.

    left_not_null, right_not_null: whether rows with NULLs in the columns of that side are dropped above.
    """
    # A padded row has NULL in all columns of one side. If rows with a NULL in any of these columns are dropped above, no
    # padded row reaches the result: FULL becomes LEFT or RIGHT, and LEFT or RIGHT becomes INNER.
    kind = plan.kind
    if kind.pads_right and right_not_null:
        kind = JoinKind.INNER if kind is JoinKind.LEFT else JoinKind.RIGHT
    if kind.pads_left and left_not_null:
        kind = JoinKind.INNER if kind is JoinKind.RIGHT else JoinKind.LEFT
    if kind is JoinKind.LEFT and plan.matches_all_pairs and always_one_row(plan.right):
        kind = JoinKind.INNER
    return kind


def _columns_not_null_in_matches(plan: Join) -> frozenset[str]:
    """Return the columns that are not NULL in any pair of rows that matches."""
    return frozenset[str]().union(
        *(
            _null_propagating_columns(k.left) | _null_propagating_columns(k.right)
            for k in plan.keys
            if not k.null_safe
        ),
        *(_null_rejecting_columns(term) for term in conjuncts(plan.condition)),
    )


def _null_rejecting_columns(term: Expr) -> frozenset[str]:
    """Return the columns for which a NULL makes the condition FALSE or NULL: ``b.y`` for ``b.y > 1``."""
    if isinstance(term, Call):
        if term.logic is Logic.AND:
            return _null_rejecting_columns(term.args[0]) | _null_rejecting_columns(term.args[1])
        if term.logic is Logic.OR:
            return _null_rejecting_columns(term.args[0]) & _null_rejecting_columns(term.args[1])
        if term.logic is Logic.IS_NOT_NULL:
            return _null_propagating_columns(term.args[0])
    return _null_propagating_columns(term)


def _null_propagating_columns(expr: Expr) -> frozenset[str]:
    """Return the columns for which a NULL makes the value NULL: ``b.y`` for ``b.y + 1``."""
    match expr:
        case Column():
            return frozenset({expr.name})
        case Cast():
            return _null_propagating_columns(expr.child)
        case InList():
            return _null_propagating_columns(expr.child)
        case Call() if expr.entry.nullable is Nullability.ANY_ARGUMENT and not expr.entry.operator.connective:
            return frozenset[str]().union(*(_null_propagating_columns(a) for a in expr.args))
        case Call(logic=Logic.AND | Logic.OR):
            return _null_propagating_columns(expr.args[0]) & _null_propagating_columns(expr.args[1])
    return frozenset()
