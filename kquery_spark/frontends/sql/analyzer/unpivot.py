"""UNPIVOT: turns columns into rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kquery_spark.errors import PlanError
from kquery_spark.expr import Column, Expr, Literal
from kquery_spark.expr.properties import chain
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, Scope, ScopeColumn
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.logical import Expand, Filter, LogicalPlan
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer


def analyze_unpivot(queries: QueryAnalyzer, relation: ResolvedRelation, node: r.Unpivot) -> ResolvedRelation:
    """A row for each of the columns, with its name; columns that UNPIVOT does not list come first in each row."""
    rows = [_columns(queries, relation, item, len(node.values)) for item in node.columns]
    # without an alias a column goes by the name that the query writes, which may differ in case from the relation's
    names = [item.alias or "_".join(path[-1] for path in item.columns) for item in node.columns]
    values = list(zip(*(_common(queries, node, columns) for columns in zip(*rows, strict=True)), strict=True))
    listed = {column for row in rows for column in row}
    kept = [c for c in relation.scope.visible if c.value not in listed]
    inputs = tuple(c.value for c in kept)
    projections = tuple(
        (*inputs, Literal(name, t.STRING), *row) for name, row in zip(names, values, strict=True)
    )
    kept_names = [queries.names.fresh(c.name) for c in kept]
    added = (node.name, *node.values)
    added_names = [queries.names.fresh(name) for name in added]
    plan: LogicalPlan = Expand(relation.plan, projections, (*kept_names, *added_names))
    if not node.keeps_nulls:
        not_null = [queries.convert.call("isnotnull", plan.column(name)) for name in added_names[1:]]
        plan = Filter(plan, chain("or", not_null))
    columns = (
        *(ScopeColumn(c.name, plan.column(n), c.qualifier) for c, n in zip(kept, kept_names, strict=True)),
        *(ScopeColumn(name, plan.column(n)) for name, n in zip(added, added_names, strict=True)),
    )
    scope = Scope(columns, queries.facts)
    return ResolvedRelation(plan, scope if node.alias is None else scope.renamed((node.alias,)))


def _columns(
    queries: QueryAnalyzer, relation: ResolvedRelation, node: r.UnpivotColumns, count: int
) -> list[Expr]:
    """The columns whose values form one row, one per value column."""
    analyzer = queries.expressions(relation.scope, None, "UNPIVOT", relation.plan)
    columns = [analyzer.expr(ast.Name(path, pos=node.pos)) for path in node.columns]
    if not all(isinstance(column, Column) for column in columns):
        queries.fail("[UNPIVOT_REQUIRES_ATTRIBUTES] UNPIVOT takes columns, not fields of them", node)
    if len(columns) != count:
        queries.fail(
            f"[UNPIVOT_VALUE_SIZE_MISMATCH] UNPIVOT has {count} value column(s), not {len(columns)}", node
        )
    return columns


def _common(queries: QueryAnalyzer, node: r.Unpivot, columns: Sequence[Expr]) -> list[Expr]:
    """Cast the columns of one value column to their common type; strings cannot be combined with other types."""
    dtypes = [column.dtype for column in columns]
    if len({dtype == t.STRING for dtype in dtypes if dtype != t.NULL}) < 2:
        try:
            return queries.convert.common(columns, "UNPIVOT")
        except PlanError:
            pass
    types = ", ".join(map(t.spark_name, dtypes))
    queries.fail(f"[UNPIVOT_VALUE_DATA_TYPE_MISMATCH] one value column of UNPIVOT takes {types}", node)
