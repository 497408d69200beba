"""Turns lateral joins into ordinary joins.

A lateral query can read the current row of the join's left side, so each left row gets its own result:

    SELECT * FROM a, LATERAL (SELECT b.y + a.x AS z FROM b WHERE b.k = a.k)
    ->  SELECT a.*, b.y + a.x AS z FROM a JOIN b ON b.k = a.k

The plan of the lateral query is processed in three steps:

1. Take the projections and filters off its top (``_take_apart``). They are evaluated above the join, where the columns of
   both sides are available, so they may read the left row in any way.
2. Decorrelate and join the rest, the core (``_join_core``). In the example, the core is ``b``.
3. Append the values of the projections, and apply the filters (``_append_values``, ``_select``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Case, Column, Expr, Literal, Named, rename_columns, substitute, walk
from kquery_spark.expr.properties import conjunction, conjuncts, is_deterministic
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
from kquery_spark.optimizer.decorrelation import bind_outer, is_correlated, pull_up, with_disjoint_names
from kquery_spark.optimizer.empty_input import value_over_no_rows
from kquery_spark.types import names as t

#: A query taken apart: its core, its output columns as expressions over the core, and its filters over the core.
_QueryParts = tuple[LogicalPlan, dict[str, Expr], list[Expr]]


def lateral_to_join(plan: LateralJoin, query: LogicalPlan) -> LogicalPlan:
    """Return the join without LATERAL. ``query``: its query, in which subqueries are already replaced by joins.

    Raises Unsupported, which names the node that a correlated condition cannot pass.
    """
    core, values, conditions = _take_apart(query)
    if _is_one_row(core):
        # SELECT without FROM: the values are computed from the left row alone.
        return _append_values(plan, plan.child, values, conditions, {})
    if isinstance(core, Aggregate) and not core.keys:
        return _join_aggregate(plan, core, values, conditions)
    if any(isinstance(n, Aggregate) and not n.keys and is_correlated(n) for n in walk_plan(core)):
        raise Unsupported("a lateral query over a correlated aggregate without GROUP BY is not supported")
    joined, inner, match_flag = _join_core(plan, core, conditions, plan.kind)
    matched = Call.of("isnotnull", joined.column(match_flag))
    padded = plan.kind is JoinKind.LEFT
    selected: dict[str, Expr] = {}
    for name, value in values.items():
        bound = _bind(plan, substitute(value, inner))
        # A left row without a match has NULLs in the core's columns, but a computed value such as coalesce(y, 0) must be
        # NULL as well.
        selected[name] = Case(((matched, bound),)) if padded and not isinstance(bound, Column) else bound
    return _select(plan, joined, selected)


def _take_apart(query: LogicalPlan) -> _QueryParts:
    """Take the Projections and Filters off the top of a query and express them over the plan below them.

    Stops at a Projection with a nondeterministic value that the expressions read more than once.
    """
    values: dict[str, Expr] = {name: query.column(name) for name in query.schema.names}
    conditions: list[Expr] = []
    while isinstance(query, Projection | Filter):
        if isinstance(query, Filter):
            conditions += conjuncts(query.condition)
        else:
            definitions = query.definitions
            if _repeats_nondeterministic(definitions, (*values.values(), *conditions)):
                break
            values = {name: substitute(value, definitions) for name, value in values.items()}
            conditions = [substitute(condition, definitions) for condition in conditions]
        query = query.child
    return query, values, conditions


def _repeats_nondeterministic(definitions: Mapping[str, Expr], exprs: Iterable[Expr]) -> bool:
    """True if the expressions read a nondeterministic definition more than once: its copies would have different values."""
    uses = Counter(part.name for expr in exprs for part in walk(expr) if isinstance(part, Column))
    return any(uses[name] > 1 and not is_deterministic(value) for name, value in definitions.items())


def _is_one_row(plan: LogicalPlan) -> bool:
    """True for the plan of a SELECT without FROM: a scan of one row without columns."""
    return isinstance(plan, Scan) and not plan.schema.names and plan.source.row_count() == 1


def _join_aggregate(
    plan: LateralJoin, core: Aggregate, values: dict[str, Expr], conditions: list[Expr]
) -> LogicalPlan:
    """Join an aggregate without keys, which returns exactly one row for each left row.

    If it is correlated, decorrelation adds keys to it. A left row without a group then gets the aggregate's value over no
    rows.
    """
    correlated = is_correlated(core)
    kind = JoinKind.LEFT if correlated else JoinKind.INNER
    joined, inner, match_flag = _join_core(plan, core, [], kind)
    assert isinstance(joined, Join)
    if joined.condition is not None:
        raise Unsupported(f"a lateral aggregate, compared by {joined.condition}, is not supported")
    if correlated:
        matched = Call.of("isnotnull", joined.column(match_flag))
        for name in core.schema.names:
            empty = value_over_no_rows(Projection(core, (Named(core.column(name), name),)))
            if empty.value is not None:
                inner[name] = Case(((matched, inner[name]),), empty)
    return _append_values(plan, joined, values, conditions, inner)


def _join_core(
    plan: LateralJoin, core: LogicalPlan, conditions: list[Expr], kind: JoinKind
) -> tuple[LogicalPlan, dict[str, Expr], str]:
    """Decorrelate the core and join it to the left side.

    Return the join, the expression over it for each column of the core, and the name of a column that is TRUE for left rows
    with a match and NULL for those without.
    """
    outer = {named.name: named.expr for named in plan.query.outer}
    pulled, terms = pull_up(core, existence=False, outer_query=(plan.child, outer))
    match_flag = fresh_name("found", [*plan.child.schema.names, *pulled.schema.names])
    columns = tuple(Named(pulled.column(n), n) for n in pulled.schema.names)
    flagged = Projection(pulled, (*columns, Named(Literal(True, t.BOOL), match_flag)))
    right, aliases = with_disjoint_names(flagged, plan.child)
    on = conjunction([bind_outer(rename_columns(x, aliases), outer) for x in (*terms, *conditions)])
    keys, residual = split_condition(on, plan.child.schema.names, right.schema.names)
    joined = Join(plan.child, right, kind, tuple(keys), conjunction(residual))
    inner: dict[str, Expr] = {n: joined.column(aliases.get(n, n)) for n in pulled.schema.names}
    return joined, inner, match_flag


def _append_values(
    plan: LateralJoin,
    joined: LogicalPlan,
    values: dict[str, Expr],
    conditions: list[Expr],
    inner: dict[str, Expr],
) -> LogicalPlan:
    """Append the values to each row of ``joined``. Rows whose conditions fail are dropped; a LEFT join makes them NULL."""
    condition = conjunction([_bind(plan, substitute(x, inner)) for x in conditions])
    bound = {name: _bind(plan, substitute(value, inner)) for name, value in values.items()}
    # There is exactly one row for each left row here. A LEFT join keeps the left row if the condition fails, with NULLs.
    if condition is not None and plan.kind is JoinKind.LEFT:
        if len(bound) > 1 and not is_deterministic(condition):  # each value would evaluate it again
            raise Unsupported("LEFT JOIN LATERAL with a nondeterministic condition is not supported")
        bound = {name: Case(((condition, value),)) for name, value in bound.items()}
    elif condition is not None:
        joined = Filter(joined, condition)
    return _select(plan, joined, bound)


def _bind(plan: LateralJoin, expr: Expr) -> Expr:
    return bind_outer(expr, {named.name: named.expr for named in plan.query.outer})


def _select(plan: LateralJoin, joined: LogicalPlan, values: dict[str, Expr]) -> LogicalPlan:
    """Select the left side's columns, then the values of the query's columns."""
    passed = (Named(joined.column(n), n) for n in plan.child.schema.names)
    return Projection(joined, (*passed, *(Named(value, name) for name, value in values.items())))
