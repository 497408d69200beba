"""CASE and CAST."""

from __future__ import annotations

from kquery_spark.expr import Cast, Expr
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import EXPRESSIONS, ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.types import supported_type
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.functions.registry import EvalMode


@EXPRESSIONS.handles(ast.CaseExpression)
def case(analyzer: ExpressionAnalyzer, node: ast.CaseExpression) -> Expr:
    """CASE with conditions, or with an operand that is compared with each."""
    operand = None if node.operand is None else analyzer.expr(node.operand)
    conditions = []
    for when in node.branches:
        if operand is None:
            conditions.append(analyzer.condition(when.condition, "WHEN"))
        else:
            with analyzer.at(when.condition):
                conditions.append(analyzer.call("eq", operand, analyzer.expr(when.condition)))
    results = [analyzer.expr(when.result) for when in node.branches]
    otherwise = None if node.otherwise is None else analyzer.expr(node.otherwise)
    return analyzer.case(conditions, results, otherwise)


@EXPRESSIONS.handles(ast.Cast)
def cast(analyzer: ExpressionAnalyzer, node: ast.Cast) -> Expr:
    """CAST and TRY_CAST."""
    target = supported_type(node.type, analyzer.facts.time_zone)
    operand = analyzer.expr(node.operand)
    if operand.dtype == target:
        return operand
    converted = analyzer.convert.cast(operand, target, implicit=False)
    return as_try_cast(converted) if node.is_try else converted


def as_try_cast(converted: Expr) -> Expr:
    """Convert a cast to a TRY_CAST, which returns NULL for values that do not fit; other expressions are unchanged."""
    if isinstance(converted, Cast):
        return Cast(converted.child, converted.to, EvalMode.TRY, converted.tz)
    return converted
