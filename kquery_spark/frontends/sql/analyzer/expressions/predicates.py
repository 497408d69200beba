"""Predicates: IS, IN, BETWEEN and LIKE."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.expr import Call, Case, Expr, InList, Literal
from kquery_spark.expr.properties import chain
from kquery_spark.frontends.sql.analyzer.constants import constant_of
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import EXPRESSIONS, ExpressionAnalyzer
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.types import names as t


@EXPRESSIONS.handles(ast.IsNull)
def is_null(analyzer: ExpressionAnalyzer, node: ast.IsNull) -> Expr:
    """``x IS [NOT] NULL``."""
    return analyzer.call("isnotnull" if node.negated else "isnull", analyzer.expr(node.operand))


@EXPRESSIONS.handles(ast.IsBoolean)
def is_boolean(analyzer: ExpressionAnalyzer, node: ast.IsBoolean) -> Expr:
    """``x IS [NOT] TRUE | FALSE | UNKNOWN``."""
    operand = analyzer.condition(node.operand, "IS")
    if node.value is None:
        return analyzer.call("isnotnull" if node.negated else "isnull", operand)
    same = analyzer.call("eq_null_safe", operand, Literal(node.value, t.BOOL))
    return analyzer.negated(same, node.negated)


@EXPRESSIONS.handles(ast.IsDistinct)
def is_distinct(analyzer: ExpressionAnalyzer, node: ast.IsDistinct) -> Expr:
    """``x IS [NOT] DISTINCT FROM y``."""
    same = analyzer.call("eq_null_safe", analyzer.expr(node.left), analyzer.expr(node.right))
    return analyzer.negated(same, not node.negated)


@EXPRESSIONS.handles(ast.InList)
def in_list(analyzer: ExpressionAnalyzer, node: ast.InList) -> Expr:
    """``x [NOT] IN (a, b)``."""
    operand = analyzer.expr(node.operand)
    items = [analyzer.expr(item) for item in node.items]
    return analyzer.negated(_contains(analyzer, operand, items), node.negated)


def _contains(analyzer: ExpressionAnalyzer, operand: Expr, items: Sequence[Expr]) -> Expr:
    if not items:
        # Default of spark.sql.legacy.nullInEmptyListBehavior: NULL IN () is false in ANSI mode, else NULL.
        false = Literal(False, t.BOOL)
        if not analyzer.facts.ansi:
            return Case(((analyzer.call("isnotnull", operand), false),), Literal(None, t.BOOL))
        # The value is false even for NULL, but the result has the nullability of the operand.
        return Case(((false, analyzer.call("eq", operand, operand)),), false)
    operand, *values = analyzer.convert.common([operand, *items], "IN")
    literals = _literal_items(operand, values)
    if literals is not None:
        return InList(operand, literals)
    return chain("or", [analyzer.call("eq", operand, value) for value in values])


def _literal_items(operand: Expr, values: Sequence[Expr]) -> tuple[Literal, ...] | None:
    """The items of an InList; None if it cannot hold them or would differ from Spark in nullability."""
    constants = [constant_of(v) for v in values]
    literals = tuple(c for c in constants if c is not None)
    # Spark's nullability follows the casts of the list, and a cast of a string may be NULL.
    may_be_null = any(
        v.nullable and c is not None and c.value is not None for v, c in zip(values, constants, strict=True)
    )
    is_exact = operand.nullable or not may_be_null
    return literals if is_exact and not t.is_nested(operand.dtype) and len(literals) == len(values) else None


@EXPRESSIONS.handles(ast.Between)
def between(analyzer: ExpressionAnalyzer, node: ast.Between) -> Expr:
    """``x [NOT] BETWEEN low AND high``."""
    operand = analyzer.expr(node.operand)
    low = analyzer.call("gteq", operand, analyzer.expr(node.low))
    inside = Call.of("and", low, analyzer.call("lteq", operand, analyzer.expr(node.high)))
    return analyzer.negated(inside, node.negated)


@EXPRESSIONS.handles(ast.Like)
def like(analyzer: ExpressionAnalyzer, node: ast.Like) -> Expr:
    """``x [NOT] LIKE pattern [ESCAPE 'c']``, ILIKE and RLIKE."""
    args = [analyzer.expr(node.operand), analyzer.expr(node.pattern)]
    if node.escape is not None and node.escape != "\\":
        args.append(Literal(node.escape, t.STRING))
    return analyzer.negated(analyzer.call(node.kind.lower(), *args), node.negated)


@EXPRESSIONS.handles(ast.LikeQuantified)
def like_quantified(analyzer: ExpressionAnalyzer, node: ast.LikeQuantified) -> Expr:
    """``x [NOT] LIKE ANY | ALL (patterns)``."""
    operand = analyzer.expr(node.operand)
    function = node.kind.lower()
    matches = [
        analyzer.negated(analyzer.call(function, operand, analyzer.expr(pattern)), node.negated)
        for pattern in node.patterns
    ]
    return chain("and" if node.quantifier == "ALL" else "or", matches)
