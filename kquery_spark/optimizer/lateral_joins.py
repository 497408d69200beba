"""Lateral joins become plain ones, whose conditions are those that the query has on the row around it."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Case, Column, Expr, Literal, Named, rename_columns, substitute
from kquery_spark.expr.properties import conjunction, conjuncts
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    LateralJoin,
    LogicalPlan,
    Projection,
    Scan,
    walk_plan,
)
from kquery_spark.logical.conditions import split_condition
from kquery_spark.logical.plan import fresh_name
from kquery_spark.optimizer.decorrelation import bind_outer, disjoint, is_correlated, pull_up
from kquery_spark.optimizer.empty_input import value_over_no_rows
from kquery_spark.types import names as t

#: A plan, what a query makes of its columns, and the conditions under which the query gives a row for one of its rows.
_Peeled = tuple[LogicalPlan, dict[str, Expr], list[Expr]]


def plain_join(plan: LateralJoin, query: LogicalPlan) -> LogicalPlan:
    """The lateral join, whose query without subqueries is ``query``; Unsupported names what conditions cannot pass."""
    core, values, conditions = _peeled(query)
    if _is_one_row(core):
        return _beside(plan, plan.child, values, conditions, {})
    if isinstance(core, Aggregate) and not core.keys:
        return _with_aggregate(plan, core, values, conditions)
    if any(isinstance(n, Aggregate) and not n.keys and is_correlated(n) for n in walk_plan(core)):
        raise Unsupported("a lateral query over a correlated aggregate without GROUP BY is not supported")
    joined, inner, found = _joined(plan, core, conditions, plan.kind)
    matched = Call.of("isnotnull", joined.column(found))
    padded = plan.kind is JoinKind.LEFT
    selected: dict[str, Expr] = {}
    for name, value in values.items():
        bound = _bound(plan, substitute(value, inner))
        selected[name] = Case(((matched, bound),)) if padded and not isinstance(bound, Column) else bound
    return _selected(plan, joined, selected)


def _peeled(query: LogicalPlan) -> _Peeled:
    """What is below the Projections and Filters at the top of a query, which a join can do above it."""
    values: dict[str, Expr] = {name: query.column(name) for name in query.schema.names}
    conditions: list[Expr] = []
    while isinstance(query, Projection | Filter):
        if isinstance(query, Filter):
            conditions += conjuncts(query.condition)
        else:
            definitions = query.definitions
            values = {name: substitute(value, definitions) for name, value in values.items()}
            conditions = [substitute(condition, definitions) for condition in conditions]
        query = query.child
    return query, values, conditions


def _is_one_row(plan: LogicalPlan) -> bool:
    """Whether the plan is that of a SELECT without FROM."""
    return isinstance(plan, Scan) and not plan.schema.names and plan.source.row_count() == 1


def _with_aggregate(
    plan: LateralJoin, core: Aggregate, values: dict[str, Expr], conditions: list[Expr]
) -> LogicalPlan:
    """Over an aggregate without keys: each row has one row of it, that of no rows where it has no group."""
    correlated = is_correlated(core)
    joined, inner, found = _joined(plan, core, [], JoinKind.LEFT if correlated else JoinKind.INNER)
    assert isinstance(joined, Join)
    if joined.condition is not None:
        raise Unsupported(f"a lateral aggregate, compared by {joined.condition}, is not supported")
    if correlated:
        matched = Call.of("isnotnull", joined.column(found))
        for name in core.schema.names:
            empty = value_over_no_rows(Projection(core, (Named(core.column(name), name),)))
            if empty.value is not None:
                inner[name] = Case(((matched, inner[name]),), empty)
    return _beside(plan, joined, values, conditions, inner)


def _joined(
    plan: LateralJoin, core: LogicalPlan, conditions: list[Expr], kind: JoinKind
) -> tuple[LogicalPlan, dict[str, Expr], str]:
    """The core joined to the child, what its columns are in the join, and the column that is NULL where it has no row."""
    outer = {named.name: named.expr for named in plan.query.outer}
    pulled, terms = pull_up(core, existence=False, around=(plan.child, outer))
    found = fresh_name("found", [*plan.child.schema.names, *pulled.schema.names])
    columns = tuple(Named(pulled.column(n), n) for n in pulled.schema.names)
    flagged = Projection(pulled, (*columns, Named(Literal(True, t.BOOL), found)))
    right, aliases = disjoint(flagged, plan.child)
    on = conjunction([bind_outer(rename_columns(x, aliases), outer) for x in (*terms, *conditions)])
    keys, residual = split_condition(on, plan.child.schema.names, right.schema.names)
    joined = Join(plan.child, right, kind, tuple(keys), conjunction(residual))
    inner: dict[str, Expr] = {n: joined.column(aliases.get(n, n)) for n in pulled.schema.names}
    return joined, inner, found


def _beside(
    plan: LateralJoin,
    joined: LogicalPlan,
    values: dict[str, Expr],
    conditions: list[Expr],
    inner: dict[str, Expr],
) -> LogicalPlan:
    """The values beside each row of ``joined``; where the conditions fail there is no row, or for LEFT a row of NULLs."""
    condition = conjunction([_bound(plan, substitute(x, inner)) for x in conditions])
    bound = {name: _bound(plan, substitute(value, inner)) for name, value in values.items()}
    if condition is not None and plan.kind is JoinKind.LEFT:
        bound = {name: Case(((condition, value),)) for name, value in bound.items()}
    elif condition is not None:
        joined = Filter(joined, condition)
    return _selected(plan, joined, bound)


def _bound(plan: LateralJoin, expr: Expr) -> Expr:
    return bind_outer(expr, {named.name: named.expr for named in plan.query.outer})


def _selected(plan: LateralJoin, joined: LogicalPlan, values: dict[str, Expr]) -> LogicalPlan:
    """The child's columns and the query's."""
    passed = (Named(joined.column(n), n) for n in plan.child.schema.names)
    return Projection(joined, (*passed, *(Named(value, name) for name, value in values.items())))
