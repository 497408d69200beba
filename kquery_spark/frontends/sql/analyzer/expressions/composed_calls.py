"""Calls that are replaced by expressions of other functions, as in Spark."""

from __future__ import annotations

from kquery_spark.expr import Expr, Literal
from kquery_spark.frontends.sql.analyzer.conversions import check_argument_count
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import CALLS, ExpressionAnalyzer
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.types import names as t


def _arguments(analyzer: ExpressionAnalyzer, node: ast.Call, *counts: int) -> list[Expr]:
    """The arguments of a call; raises an error unless their number is one of the allowed ones."""
    check_argument_count(node, *counts)
    return list(analyzer.arguments(node))


@CALLS.handles("assert_true")
def _assert_true(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """ASSERT_TRUE: NULL if the condition is true, otherwise an error."""
    check_argument_count(node, 1, 2)
    condition = analyzer.condition(node.arguments[0], "IF")
    message: Expr = Literal("the condition is not true!", t.STRING)
    if len(node.arguments) == 2:
        message = analyzer.expr(node.arguments[1])
    return analyzer.case([condition], [Literal(None, t.NULL)], analyzer.call("raise_error", message))


@CALLS.handles("regexp_count")
def _regexp_count(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    text, pattern = _arguments(analyzer, node, 2)
    return analyzer.call("size", analyzer.call("regexp_extract_all", text, pattern, Literal(0, t.INT)))


@CALLS.handles("regexp_substr")
def _regexp_substr(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """REGEXP_SUBSTR: the first match; NULL if it is empty, or if there is none."""
    text, pattern = _arguments(analyzer, node, 2)
    match = analyzer.call("regexp_extract", text, pattern, Literal(0, t.INT))
    is_empty = analyzer.call("eq", match, Literal("", t.STRING))
    return analyzer.case([is_empty], [Literal(None, t.STRING)], match)


@CALLS.handles("zeroifnull")
def _zeroifnull(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    (value,) = _arguments(analyzer, node, 1)
    return analyzer.call("coalesce", value, Literal(0, t.INT))


@CALLS.handles("convert_timezone")
def _convert_timezone(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """CONVERT_TIMEZONE: the source is the session's time zone unless the call specifies one."""
    zones_and_time = _arguments(analyzer, node, 2, 3)
    own_zone = [Literal(analyzer.facts.time_zone, t.STRING)] if len(zones_and_time) == 2 else []
    return analyzer.call("convert_timezone", *own_zone, *zones_and_time)
