"""``grouping`` and ``grouping_id``."""

from __future__ import annotations

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import CALLS, ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.grouping import GroupingMark
from kquery_spark.frontends.sql.ast import expressions as ast


@CALLS.handles("grouping")
def grouping(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """``grouping(key)``."""
    keys = _keys(analyzer, node)
    if len(keys) != 1:
        raise PlanError(f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] grouping takes 1 argument, not {len(keys)}")
    return GroupingMark(keys, False)


@CALLS.handles("grouping_id")
def grouping_id(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """``grouping_id(keys)``."""
    return GroupingMark(_keys(analyzer, node), True)


def _keys(analyzer: ExpressionAnalyzer, node: ast.Call) -> tuple[Expr, ...]:
    name = node.name[0].lower()
    if not analyzer.allows_aggregates:
        analyzer.fail(f"[UNSUPPORTED_GROUPING_EXPRESSION] {name} is not allowed in {analyzer.clause}", node)
    return tuple(analyzer.arguments(node))
