"""ROLLUP, CUBE and GROUPING SETS: each input row once per set, with the keys the set leaves out as NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Column, Expr, Literal
from kquery_spark.frontends.sql.analyzer.grouping import Grouping
from kquery_spark.frontends.sql.analyzer.scope import Names
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.logical import Expand, LogicalPlan
from kquery_spark.types import names as t

Sets = list[list[Expr]]
Resolve = Callable[[ast.Expression], Expr]


def grouping_sets(group_by: q.GroupBy, resolve: Resolve) -> Sets | None:
    """The sets of keys to group by, one after the other; None for plain keys only."""
    if group_by.sets_of is not None:
        for element in group_by.elements:
            assert isinstance(element, ast.Expression)
            resolve(element)
        return [[resolve(e) for e in s.expressions] for s in group_by.sets_of]
    if all(isinstance(e, ast.Expression) for e in group_by.elements):
        return None
    sets: Sets = [[]]
    for element in group_by.elements:
        sets = [a + b for a in sets for b in _sets(element, resolve)]
    return sets


def _sets(element: q.GroupingElement | q.GroupingSet, resolve: Resolve) -> Sets:
    match element:
        case q.Rollup():
            groups = [[resolve(e) for e in s] for s in element.sets]
            return [_flat(groups[:n]) for n in range(len(groups), -1, -1)]
        case q.Cube():
            groups = [[resolve(e) for e in s] for s in element.sets]
            chosen = [c for n in range(len(groups), -1, -1) for c in combinations(range(len(groups)), n)]
            return [_flat([groups[i] for i in c]) for c in chosen]
        case q.GroupingSets():
            return [s for inner in element.elements for s in _sets(inner, resolve)]
        case q.GroupingSet():
            return [[resolve(e) for e in element.expressions]]
    assert isinstance(element, ast.Expression)
    return [[resolve(element)]]


def _flat(groups: Sequence[Sequence[Expr]]) -> list[Expr]:
    return [e for group in groups for e in group]


def expanded(plan: LogicalPlan, sets: Sets, grouping: Grouping, names: Names) -> LogicalPlan:
    """The input repeated for each set, and the keys given to ``grouping``.

    The grouping id has a bit for each key, first key highest, set where the key is left out.
    """
    every = list(dict.fromkeys(e for s in sets for e in s))
    if len(every) > 64:
        raise PlanError("[GROUPING_SIZE_LIMIT_EXCEEDED] grouping sets of more than 64 keys")
    for expr in every:
        if isinstance(expr, Literal):
            raise Unsupported("A constant in ROLLUP, CUBE or GROUPING SETS is not supported.")
    inputs = [plan.column(n) for n in plan.schema.names]
    ids = [_grouping_id(every, s) for s in sets]
    repeated = len(set(ids)) < len(ids)
    key_names = [names.fresh(e.name if isinstance(e, Column) else "key") for e in every]
    id_name = names.fresh("grouping_id")
    added = [*key_names, id_name]
    if repeated:
        added.append(names.fresh("grouping_position"))
    projections: list[tuple[Expr, ...]] = []
    for place, (chosen, number) in enumerate(zip(sets, ids, strict=True)):
        keys = [e if e in chosen else Literal(None, e.dtype) for e in every]
        extra = [Literal(number, t.LONG), *([Literal(place, t.LONG)] if repeated else [])]
        projections.append((*inputs, *keys, *extra))
    plan = Expand(plan, tuple(projections), (*plan.schema.names, *added))
    for name in added:
        grouping.add_key(plan.column(name))
    id_column = plan.column(id_name)
    for expr, name in zip(every, key_names, strict=True):
        grouping.stand_in(expr, plan.column(name))
    grouping.set_ids(every, id_column)
    return plan


def _grouping_id(every: Sequence[Expr], chosen: Sequence[Expr]) -> int:
    number = 0
    for expr in every:
        number = number * 2 + (expr not in chosen)
    return number
