"""LATERAL: joins with a subquery or a table function that reads the rows of the left side."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Expr, transform, walk
from kquery_spark.frontends.sql.analyzer.expressions.names import find_name
from kquery_spark.frontends.sql.analyzer.outer_row import OuterRow
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, Scope, refresh_nullability
from kquery_spark.frontends.sql.ast import relations as ast
from kquery_spark.functions.special_forms import generator_function
from kquery_spark.logical import Filter, JoinKind, LateralJoin, LateralQuery
from kquery_spark.logical.subqueries import Subquery

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer

_KINDS = {"INNER": JoinKind.INNER, "CROSS": JoinKind.INNER, "LEFT": JoinKind.LEFT}


def lateral_join(
    queries: QueryAnalyzer, left: ResolvedRelation, node: ast.Join, outer: OuterRow | None
) -> ResolvedRelation:
    """Join each row of the left side with the rows that the right side of LATERAL returns for it."""
    assert isinstance(node.right, ast.Lateral)
    kind = _KINDS.get(node.kind)
    if kind is None:
        queries.fail(f"[INVALID_LATERAL_JOIN_TYPE] a {node.kind} join cannot be LATERAL", node)
    if node.using or node.natural:
        queries.fail("[UNSUPPORTED_FEATURE.LATERAL_JOIN_USING] a lateral join takes ON, not USING", node)
    relation = node.right.relation
    if isinstance(relation, ast.TableFunction) and generator_function(relation.name[-1].lower()) is not None:
        if kind is JoinKind.LEFT:
            queries.fail(
                "LEFT JOIN LATERAL of a table function is not supported; write LATERAL VIEW OUTER", node
            )
        return _join_generator(queries, left, node, relation, outer)
    row = _row(queries, left, outer)
    right = queries.relations.relation(relation, row)
    scope = left.scope.concat(right.scope)
    condition = _condition(queries, node, scope, left, right, outer)
    if not row.captured:
        return queries.relations.on(left, right, kind, condition)
    rows = right.plan
    if condition is not None and kind is JoinKind.LEFT:
        rows = Filter(rows, _with_outer_columns(condition, left, row))
    plan = LateralJoin(left.plan, LateralQuery(rows, row.captured_columns), kind)
    filtered = plan if condition is None or kind is JoinKind.LEFT else Filter(plan, condition)
    return ResolvedRelation(filtered, refresh_nullability(scope, plan))


def _row(queries: QueryAnalyzer, left: ResolvedRelation, outer: OuterRow | None) -> OuterRow:
    """An outer row that finds names in the row of the left side, and then in the outer row of the whole query."""
    analyzer = queries.expressions(left.scope, outer, "LATERAL", left.plan)
    return OuterRow(partial(find_name, analyzer), queries.names)


def _condition(
    queries: QueryAnalyzer,
    node: ast.Join,
    scope: Scope,
    left: ResolvedRelation,
    right: ResolvedRelation,
    outer: OuterRow | None,
) -> Expr | None:
    if node.condition is None:
        return None
    analyzer = queries.expressions(scope, outer, "a join condition", left.plan, right.plan)
    condition = analyzer.condition(node.condition, "ON")
    if any(isinstance(e, Subquery) for e in walk(condition)):
        raise Unsupported("a subquery in the condition of a lateral join is not supported")
    return condition


def _with_outer_columns(condition: Expr, left: ResolvedRelation, row: OuterRow) -> Expr:
    """Rewrite a condition over both sides for the subquery, to which columns of the left side are outer columns."""
    names = left.plan.column_names
    return transform(
        condition, lambda e: row.value(e, e.name) if isinstance(e, Column) and e.name in names else e
    )


def _join_generator(
    queries: QueryAnalyzer,
    left: ResolvedRelation,
    node: ast.Join,
    function: ast.TableFunction,
    outer: OuterRow | None,
) -> ResolvedRelation:
    """LATERAL explode(x) and the like."""
    joined = queries.generators.table_function(left, function, outer)
    if node.condition is None:
        return joined
    analyzer = queries.expressions(joined.scope, outer, "a join condition", joined.plan)
    condition = analyzer.condition(node.condition, "ON")
    return ResolvedRelation(Filter(joined.plan, condition), joined.scope)
