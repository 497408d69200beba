"""Prints operators in column names; sums with dates and timestamps are printed as the functions that implement them."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.frontends.sql.analyzer.naming.writer import PRINTERS, NameWriter
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.types import names as t


@PRINTERS.handles(ast.Unary)
def unary(writer: NameWriter, node: ast.Unary) -> str:
    """``-x``, ``+x`` and ``~x``."""
    operand = writer.text(node.operand)
    return f"({node.op} {operand})" if node.op in ("-", "+") else f"{node.op}{operand}"


@PRINTERS.handles(ast.Not)
def not_(writer: NameWriter, node: ast.Not) -> str:
    """``NOT x``."""
    return f"(NOT {writer.text(node.operand)})"


@PRINTERS.handles(ast.And, ast.Or)
def logical_chain(writer: NameWriter, node: ast.And | ast.Or) -> str:
    """``((a AND b) AND c)``."""
    word = "AND" if isinstance(node, ast.And) else "OR"
    text = writer.text(node.terms[0])
    for term in node.terms[1:]:
        text = f"({text} {word} {writer.text(term)})"
    return text


@PRINTERS.handles(ast.Binary)
def binary(writer: NameWriter, node: ast.Binary) -> str:
    """``(x op y)``."""
    left, right = writer.text(node.left), writer.text(node.right)
    if node.op in ("+", "-"):
        temporal = _temporal_sum(writer, node, left, right)
        if temporal is not None:
            return temporal
    if node.op in ("*", "/") and _is_interval(node):
        # Spark shows the interval first
        return f"({right} {node.op} {left})" if _is_interval(node.right) else f"({left} {node.op} {right})"
    if node.op in ("<>", "!="):
        return f"(NOT ({left} = {right}))"
    if node.op == "||":
        return f"concat({left}, {right})"
    op = {"==": "=", "DIV": "div"}.get(node.op, node.op)
    return f"({left} {op} {right})"


def _temporal_sum(writer: NameWriter, node: ast.Binary, left: str, right: str) -> str | None:
    """A sum or difference with a date or timestamp; None for ordinary arithmetic."""
    left_type, right_type = writer.context.dtype_of(node.left), writer.context.dtype_of(node.right)
    if _is_moment(left_type):
        return _shifted_moment(node.op, left, left_type, node.right, right, right_type)
    if node.op == "+" and _is_moment(right_type):
        return _shifted_moment(node.op, right, right_type, node.left, left, left_type)
    return None


def _shifted_moment(
    op: str,
    moment: str,
    moment_type: pa.DataType | None,
    amount: ast.Expression,
    amount_text: str,
    amount_type: pa.DataType | None,
) -> str | None:
    is_date = moment_type == t.DATE
    if isinstance(amount, ast.IntervalLiteral) and is_date and amount.start == amount.end == "DAY":
        days = f"extractansiintervaldays({amount_text})"
        return f"date_add({moment}, {days if op == '+' else f'(- {days})'})"
    if _is_interval(amount):
        return f"{moment} {op} {amount_text}"
    if is_date and amount_type is not None and t.is_integral(amount_type):
        return f"{'date_add' if op == '+' else 'date_sub'}({moment}, {amount_text})"
    return None


def _is_moment(dtype: pa.DataType | None) -> bool:
    return dtype is not None and (dtype == t.DATE or pa.types.is_timestamp(dtype))


def _is_interval(node: ast.Expression) -> bool:
    """True if an expression is an interval by its syntax: a literal, or arithmetic with one."""
    if isinstance(node, ast.Binary):
        return node.op in ("+", "-", "*", "/") and (_is_interval(node.left) or _is_interval(node.right))
    return isinstance(node, ast.IntervalLiteral)
