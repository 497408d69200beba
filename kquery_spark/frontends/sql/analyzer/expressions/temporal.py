"""Arithmetic with dates, timestamps and intervals, which Spark resolves to functions of its own."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import ExpressionAnalyzer
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.functions.registry import function, has_function
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS


def interval_arithmetic(analyzer: ExpressionAnalyzer, node: ast.Binary) -> Expr | None:
    """A sum or difference with an interval literal; None for other arithmetic."""
    months = months_of(analyzer, node.right)
    if months is not None:
        if node.op == "-":
            months = analyzer.call("negative", months)
        return _add_months(analyzer, analyzer.expr(node.left), months)
    months = months_of(analyzer, node.left)
    if months is not None:
        return _months_first(analyzer, node, months)
    if isinstance(node.right, ast.IntervalLiteral):
        if isinstance(node.left, ast.IntervalLiteral):
            return None
        sign = -1 if node.op == "-" else 1
        return _add_interval(analyzer, analyzer.expr(node.left), node.right, sign)
    if isinstance(node.left, ast.IntervalLiteral):
        if node.op == "-":
            return None
        return _add_interval(analyzer, analyzer.expr(node.right), node.left, 1)
    return None


def _months_first(analyzer: ExpressionAnalyzer, node: ast.Binary, months: Expr) -> Expr | None:
    """``INTERVAL 1 MONTH + date``."""
    value = analyzer.expr(node.right)
    if node.op == "+":
        return _add_months(analyzer, value, months)
    if value.dtype == t.DATE:
        analyzer.fail("[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] an interval minus a date is invalid", node)
    return None


def typed_arithmetic(analyzer: ExpressionAnalyzer, op: str, left: Expr, right: Expr) -> Expr | None:
    """Arithmetic of dates, timestamps or intervals, determined by the types; None for ordinary arithmetic."""
    match op:
        case "+":
            return _sum(analyzer, left, right)
        case "-":
            return _difference(analyzer, left, right)
        case "*" if left.dtype == t.DAY_TIME or right.dtype == t.DAY_TIME:
            interval, number = (left, right) if left.dtype == t.DAY_TIME else (right, left)
            return analyzer.call("multiply_interval", interval, number)
        case "/" if left.dtype == t.DAY_TIME:
            return analyzer.call("divide_interval", left, right)
    return None


def _sum(analyzer: ExpressionAnalyzer, left: Expr, right: Expr) -> Expr | None:
    """A date plus days, or a timestamp plus an interval."""
    if right.dtype == t.DATE and t.is_integral(left.dtype):
        left, right = right, left
    if left.dtype == t.DATE and t.is_integral(right.dtype):
        return analyzer.call("date_add", left, right)
    if pa.types.is_timestamp(left.dtype) and right.dtype == t.DAY_TIME:
        return analyzer.call("timestamp_add_interval", left, right)
    return None


def _difference(analyzer: ExpressionAnalyzer, left: Expr, right: Expr) -> Expr | None:
    """A date minus days or a date, or a timestamp minus an interval, a timestamp or a date."""
    if left.dtype == t.DATE and t.is_integral(right.dtype):
        return analyzer.call("date_sub", left, right)
    if left.dtype == right.dtype == t.DATE:
        return analyzer.call("subtract_dates", left, right)
    timestamp = _common_timestamp(left.dtype, right.dtype)
    if timestamp is not None:
        sides = [analyzer.convert.cast(side, timestamp) for side in (left, right)]
        return analyzer.call("subtract_timestamps", *sides)
    if pa.types.is_timestamp(left.dtype) and right.dtype == t.DAY_TIME:
        return analyzer.call("timestamp_add_interval", left, analyzer.call("negative", right))
    return None


def _common_timestamp(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The timestamp type for a subtraction; None unless one operand is a timestamp and the other a timestamp or a date."""
    for dtype, other in ((left, right), (right, left)):
        if pa.types.is_timestamp(dtype):
            return dtype if pa.types.is_timestamp(other) or other == t.DATE else None
    return None


def months_of(analyzer: ExpressionAnalyzer, node: ast.Expression) -> Expr | None:
    """A year-month interval; None for anything else.

    SQL has no columns of such intervals here, so they exist only where a date or timestamp is next to them.
    """
    match node:
        case ast.IntervalLiteral(is_year_month=True):
            return Literal(node.amount, t.YEAR_MONTH)
        case ast.Unary(op="-" | "+"):
            operand = months_of(analyzer, node.operand)
            return analyzer.call("negative", operand) if operand is not None and node.op == "-" else operand
        case ast.Binary(op="+" | "-"):
            return _added_months(analyzer, node)
        case ast.Binary(op="*"):
            return _multiplied_months(analyzer, node)
        case ast.Call(name=(name,)) if has_function(name) and function(name).makes_months:
            return _make_year_month_interval(analyzer, name, node)
    return None


def _added_months(analyzer: ExpressionAnalyzer, node: ast.Binary) -> Expr | None:
    left, right = months_of(analyzer, node.left), months_of(analyzer, node.right)
    if left is None or right is None:
        return None
    return analyzer.call("add" if node.op == "+" else "subtract", left, right)


def _multiplied_months(analyzer: ExpressionAnalyzer, node: ast.Binary) -> Expr | None:
    for interval, other in ((node.left, node.right), (node.right, node.left)):
        months = months_of(analyzer, interval)
        if months is None:
            continue
        return analyzer.call("multiply_interval", months, analyzer.expr(other))
    return None


def _make_year_month_interval(analyzer: ExpressionAnalyzer, name: str, node: ast.Call) -> Expr:
    if len(node.arguments) > 2 or node.over is not None:
        raise PlanError(f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] {name} takes up to 2 arguments")
    parts: list[Expr] = [Literal(0, t.INT), Literal(0, t.INT)]
    for index, argument in enumerate(node.arguments):
        parts[index] = analyzer.convert.cast(analyzer.expr(argument), t.INT)
    return Call.of(name, *parts)  # an interval that is too long is an error in every session


def _add_months(analyzer: ExpressionAnalyzer, value: Expr, interval: Expr) -> Expr | None:
    if isinstance(interval, Literal):
        months: Expr = Literal(interval.value, t.INT)
    else:
        months = analyzer.call("interval_total_months", interval)
    if value.dtype == t.DATE:
        return analyzer.call("add_months", value, months)
    if pa.types.is_timestamp(value.dtype):
        return analyzer.call("timestamp_add_months", value, months)
    return None


def _add_interval(
    analyzer: ExpressionAnalyzer, value: Expr, interval: ast.IntervalLiteral, sign: int
) -> Expr | None:
    amount = sign * interval.amount
    is_date = value.dtype == t.DATE
    if value.dtype == t.STRING or (not is_date and not pa.types.is_timestamp(value.dtype)):
        return None
    if is_date and interval.start == interval.end == "DAY":
        return analyzer.call("date_add", value, Literal(amount // DAY_MICROS, t.INT))
    if is_date:
        value = analyzer.convert.cast(value, t.timestamp(analyzer.facts.time_zone))
    return analyzer.call("timestamp_add_interval", value, Literal(amount, t.DAY_TIME))
