"""Operators: arithmetic, comparisons, ``||``, bits, AND, OR and NOT."""

from __future__ import annotations

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.expr.properties import chain
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import EXPRESSIONS, ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.expressions.temporal import interval_arithmetic, typed_arithmetic
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.functions.registry import operator_function
from kquery_spark.types import names as t


@EXPRESSIONS.handles(ast.Unary)
def unary(analyzer: ExpressionAnalyzer, node: ast.Unary) -> Expr:
    """``-x``, ``+x`` and ``~x``."""
    operand = analyzer.expr(node.operand)
    name = operator_function(node.op, 1)
    if name is None:
        raise Unsupported(f"the operator {node.op} is not supported")
    if node.op == "-" and isinstance(operand, Literal) and operand.dtype == t.NULL:
        return Literal(None, t.DOUBLE)
    return analyzer.call(name, operand)


@EXPRESSIONS.handles(ast.Binary)
def binary(analyzer: ExpressionAnalyzer, node: ast.Binary) -> Expr:
    """``x op y``: arithmetic with dates and intervals first, then the operator's function."""
    if node.op in ("+", "-"):
        shifted = interval_arithmetic(analyzer, node)
        if shifted is not None:
            return shifted
    name = operator_function(node.op, 2)
    if name is None:
        raise Unsupported(f"the operator {node.op} is not supported")
    left, right = analyzer.expr(node.left), analyzer.expr(node.right)
    temporal = typed_arithmetic(analyzer, node.op, left, right)
    if temporal is not None:
        return temporal
    if node.op == "||":
        return analyzer.call(name, *_operands(name, left), *_operands(name, right))
    try:
        return analyzer.call(name, left, right)
    except Unsupported:
        raise
    except PlanError as error:
        if str(error).startswith("["):
            raise
        kind = "DIFF_TYPES" if left.dtype != right.dtype else "WRONG_TYPE"
        analyzer.fail(f"[DATATYPE_MISMATCH.BINARY_OP_{kind}] {error}", node)


def _operands(name: str, expr: Expr) -> tuple[Expr, ...]:
    """The operands of an operand that is a call of the same function, so that ``a || b || c`` is one flat call."""
    return expr.args if isinstance(expr, Call) and expr.function == name else (expr,)


@EXPRESSIONS.handles(ast.And, ast.Or)
def logical_chain(analyzer: ExpressionAnalyzer, node: ast.And | ast.Or) -> Expr:
    """``a AND b AND c``."""
    word = "and" if isinstance(node, ast.And) else "or"
    return chain(word, [analyzer.condition(term, word.upper()) for term in node.terms])


@EXPRESSIONS.handles(ast.Not)
def not_(analyzer: ExpressionAnalyzer, node: ast.Not) -> Expr:
    """``NOT x``."""
    return analyzer.call("not", analyzer.condition(node.operand, "NOT"))
