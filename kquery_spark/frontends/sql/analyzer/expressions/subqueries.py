"""Subqueries in expressions: EXISTS, IN and scalar subqueries, with the values they read of the outer row."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from kquery_spark.expr import Expr, Named, walk
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import (
    EXPRESSIONS,
    AnalyzedSubquery,
    ExpressionAnalyzer,
)
from kquery_spark.frontends.sql.analyzer.expressions.names import find_name
from kquery_spark.frontends.sql.analyzer.outer_row import OuterRow
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast.queries import Query
from kquery_spark.logical import LogicalPlan, Projection, walk_plan
from kquery_spark.logical.subqueries import Exists, InSubquery, OuterColumn, ScalarSubquery


@EXPRESSIONS.handles(ast.Exists)
def exists(analyzer: ExpressionAnalyzer, node: ast.Exists) -> Expr:
    """``EXISTS (query)``."""
    relation, captured = _analyzed(analyzer, node.query)
    return Exists(relation.plan, captured)


@EXPRESSIONS.handles(ast.ScalarSubquery)
def scalar_subquery(analyzer: ExpressionAnalyzer, node: ast.ScalarSubquery) -> Expr:
    """A subquery as a value."""
    relation, captured = _analyzed(analyzer, node.query)
    count = len(relation.scope.visible)
    if count != 1:
        analyzer.fail(
            "[INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN] "
            f"a subquery used as a value must have one column, not {count}",
            node,
        )
    return ScalarSubquery(relation.plan, captured)


@EXPRESSIONS.handles(ast.InSubquery)
def in_subquery(analyzer: ExpressionAnalyzer, node: ast.InSubquery) -> Expr:
    """``x [NOT] IN (query)``: values and the subquery's columns are compared at common types."""
    operands = node.operand.items if isinstance(node.operand, ast.Row) else (node.operand,)
    values = [analyzer.expr(o) for o in operands]
    relation, captured = _analyzed(analyzer, node.query)
    columns = [c.value for c in relation.scope.visible]
    if len(columns) != len(values):
        analyzer.fail(
            f"[DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH] IN compares {len(values)} value(s) with "
            f"{len(columns)} column(s)",
            node,
        )
    pairs = [analyzer.convert.common([v, c], "IN") for v, c in zip(values, columns, strict=True)]
    plan = _compared_columns(analyzer, relation.plan, columns, [pair[1] for pair in pairs])
    return analyzer.negated(InSubquery(plan, captured, tuple(pair[0] for pair in pairs)), node.negated)


def _compared_columns(
    analyzer: ExpressionAnalyzer, plan: LogicalPlan, columns: list[Expr], converted: list[Expr]
) -> LogicalPlan:
    """Project the subquery's plan to the compared columns, cast to their common types."""
    unchanged = all(new is old for new, old in zip(converted, columns, strict=True))
    if unchanged and len(plan.schema) == len(columns):
        return plan
    return Projection(plan, tuple(Named(value, analyzer.names.fresh("in_value")) for value in converted))


def captured_names(analyzer: ExpressionAnalyzer, query: Query) -> list[str]:
    """The columns of the outer row that a subquery reads, in Spark's order: from the top of its plan down."""
    subquery = _subquery(replace(analyzer, reuses_subqueries=True), query)
    exprs = (e for node in walk_plan(subquery.relation.plan) for x in node.expressions for e in walk(x))
    names = subquery.outer.column_names
    return [names[e.name] for e in exprs if isinstance(e, OuterColumn) and e.name in names]


def _analyzed(analyzer: ExpressionAnalyzer, query: Query) -> tuple[ResolvedRelation, tuple[Named, ...]]:
    subquery = _subquery(analyzer, query)
    return subquery.relation, subquery.outer.captured_columns


def _subquery(analyzer: ExpressionAnalyzer, query: Query) -> AnalyzedSubquery:
    subquery = analyzer.subqueries.get(id(query)) if analyzer.reuses_subqueries else None
    if subquery is None:
        outer = _outer_row(analyzer)
        subquery = AnalyzedSubquery(query, analyzer.analyze_subquery(query, outer), outer)
        analyzer.subqueries[id(query)] = subquery
    return subquery


def _outer_row(analyzer: ExpressionAnalyzer) -> OuterRow:
    """The outer row of a subquery, in which earlier aliases of the select list are not visible."""
    without_aliases = replace(analyzer, aliases={})
    return OuterRow(partial(find_name, without_aliases), analyzer.names)
