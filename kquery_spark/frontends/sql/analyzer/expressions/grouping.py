"""``grouping`` and ``grouping_id``."""

from __future__ import annotations

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import CALLS, ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.grouping import GroupingMark
from kquery_spark.frontends.sql.ast import expressions as ast


@CALLS.handles("grouping", "grouping_id")
def grouping_call(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """``grouping(key)`` and ``grouping_id(keys)``."""
    name = node.name[0].lower()
    if not analyzer.allows_aggregates:
        analyzer.fail(f"[UNSUPPORTED_GROUPING_EXPRESSION] {name} is not allowed in {analyzer.clause}", node)
    keys = tuple(analyzer.arguments(node))
    if name == "grouping" and len(keys) != 1:
        raise PlanError(f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] grouping takes 1 argument, not {len(keys)}")
    return GroupingMark(keys, name == "grouping_id")
