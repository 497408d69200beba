"""UNPIVOT: a row for each of some columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kquery_spark.errors import PlanError
from kquery_spark.expr import Column, Expr, Literal
from kquery_spark.expr.properties import chain
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, Scope, ScopeColumn
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.logical import Expand, Filter, LogicalPlan
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer


def unpivoted(queries: QueryAnalyzer, relation: ResolvedRelation, node: r.Unpivot) -> ResolvedRelation:
    """A row for each of the columns, with its name; those that are not named come first in each row."""
    rows = [[_column(queries, relation, path, item) for path in item.columns] for item in node.columns]
    for columns, item in zip(rows, node.columns, strict=True):
        if len(columns) != len(node.values):
            queries.fail(
                f"[UNPIVOT_VALUE_SIZE_MISMATCH] UNPIVOT has {len(node.values)} value column(s), not {len(columns)}",
                item,
            )
    used = {column.value for columns in rows for column in columns}
    kept = [c for c in relation.scope.visible if c.value not in used]
    names = [
        item.alias or "_".join(c.name for c in columns)
        for item, columns in zip(node.columns, rows, strict=True)
    ]
    values = list(zip(*(_common(queries, node, columns) for columns in zip(*rows, strict=True)), strict=True))
    added = [queries.names.fresh(name) for name in (node.name, *node.values)]
    inputs = tuple(c.value for c in kept)
    projections = tuple(
        (*inputs, Literal(name, t.STRING), *row) for name, row in zip(names, values, strict=True)
    )
    passed = [queries.names.fresh(c.name) for c in kept]
    plan: LogicalPlan = Expand(relation.plan, projections, (*passed, *added))
    if not node.keeps_nulls:
        known = [queries.convert.call("isnotnull", plan.column(name)) for name in added[1:]]
        plan = Filter(plan, chain("or", known))
    columns = [
        *(ScopeColumn(c.name, plan.column(n), c.qualifier) for c, n in zip(kept, passed, strict=True)),
        *(
            ScopeColumn(name, plan.column(n))
            for name, n in zip((node.name, *node.values), added, strict=True)
        ),
    ]
    scope = Scope(tuple(columns), queries.facts)
    return ResolvedRelation(plan, scope if node.alias is None else scope.renamed((node.alias,)))


def _column(
    queries: QueryAnalyzer, relation: ResolvedRelation, path: tuple[str, ...], node: r.UnpivotColumns
) -> ScopeColumn:
    """A column that UNPIVOT names, with the name that it has in the relation."""
    resolved = relation.scope.find(path, queries.sql, node.pos)
    if resolved is None:
        queries.fail(
            f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] there is no column {'.'.join(path)}; the columns are "
            f"{relation.scope.candidates()}",
            node,
        )
    if resolved.fields or not isinstance(resolved.value, Column):
        queries.fail(f"[UNPIVOT_REQUIRES_ATTRIBUTES] {'.'.join(path)} is no column of its own", node)
    return next(c for c in relation.scope.columns if c.value == resolved.value)


def _common(queries: QueryAnalyzer, node: r.Unpivot, columns: Sequence[ScopeColumn]) -> list[Expr]:
    """The columns that go to one value column, at one type; strings do not mix with others."""
    values = [c.value for c in columns]
    try:
        common = queries.convert.common(values, "UNPIVOT")
        if len({v.dtype == t.STRING for v in values if v.dtype != t.NULL}) > 1:
            raise PlanError("strings stay strings in UNPIVOT")
    except PlanError:
        types = ", ".join(f"{c.name} {t.spark_name(c.value.dtype)}" for c in columns)
        queries.fail(f"[UNPIVOT_VALUE_DATA_TYPE_MISMATCH] UNPIVOT mixes the types of {types}", node)
    return common
