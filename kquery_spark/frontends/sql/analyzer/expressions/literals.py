"""Translates literals of the syntax tree to typed values."""

from __future__ import annotations

from kquery_spark.errors import KQueryError, Unsupported
from kquery_spark.expr import Cast, Expr, Literal
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import EXPRESSIONS, ExpressionAnalyzer
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.types import names as t

_INTEGERS = {"tinyint": t.BYTE, "smallint": t.SHORT, "int": t.INT, "bigint": t.LONG}


@EXPRESSIONS.handles(ast.NullLiteral)
def null(analyzer: ExpressionAnalyzer, node: ast.NullLiteral) -> Expr:
    """``NULL``, which has a type of its own."""
    return Literal(None, t.NULL)


@EXPRESSIONS.handles(ast.BooleanLiteral)
def boolean(analyzer: ExpressionAnalyzer, node: ast.BooleanLiteral) -> Expr:
    """``TRUE`` and ``FALSE``."""
    return Literal(node.value, t.BOOL)


@EXPRESSIONS.handles(ast.StringLiteral)
def string(analyzer: ExpressionAnalyzer, node: ast.StringLiteral) -> Expr:
    """``'text'``."""
    return Literal(node.value, t.STRING)


@EXPRESSIONS.handles(ast.IntegerLiteral)
def integer(analyzer: ExpressionAnalyzer, node: ast.IntegerLiteral) -> Expr:
    """A whole number of 1 to 8 bytes."""
    return Literal(node.value, _INTEGERS[node.type])


@EXPRESSIONS.handles(ast.DecimalLiteral)
def decimal(analyzer: ExpressionAnalyzer, node: ast.DecimalLiteral) -> Expr:
    """``1.50``: a decimal with the digits that are written."""
    return Literal(node.value, t.decimal(max(node.precision, 1), node.scale))


@EXPRESSIONS.handles(ast.FloatingLiteral)
def floating(analyzer: ExpressionAnalyzer, node: ast.FloatingLiteral) -> Expr:
    """``1.5D``, ``1.5F`` and ``1e0``."""
    return Literal(node.value, t.DOUBLE if node.type == "double" else t.FLOAT)


@EXPRESSIONS.handles(ast.BinaryLiteral)
def binary(analyzer: ExpressionAnalyzer, node: ast.BinaryLiteral) -> Expr:
    """``X'1F'``."""
    return Literal(node.value, t.BINARY)


@EXPRESSIONS.handles(ast.TypedLiteral)
def typed_literal(analyzer: ExpressionAnalyzer, node: ast.TypedLiteral) -> Expr:
    """``DATE '2020-01-31'`` and ``TIMESTAMP '...'``: a cast of the string."""
    zone = analyzer.facts.time_zone
    targets = {"date": t.DATE, "timestamp": t.timestamp(zone), "timestamp_ntz": t.TIMESTAMP_NTZ}
    try:
        return evaluate_constant(Cast(Literal(node.text, t.STRING), targets[node.type], tz=zone))
    except KQueryError:
        message = f"[INVALID_TYPED_LITERAL] '{node.text}' is no {node.type.upper()}"
    analyzer.fail(message, node)


@EXPRESSIONS.handles(ast.IntervalLiteral)
def interval(analyzer: ExpressionAnalyzer, node: ast.IntervalLiteral) -> Expr:
    """A day-time interval; the engine has no type for year-month intervals."""
    if node.is_year_month:
        raise Unsupported("year-month intervals are supported only when added to dates or timestamps")
    return Literal(node.amount, t.DAY_TIME)
