"""``+`` and ``-`` with dates, timestamps and intervals, which Spark resolves to functions of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Expr, Literal
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.expressions import ExpressionAnalyzer

_DAY = 86_400_000_000


def temporal_arithmetic(analyzer: ExpressionAnalyzer, node: ast.Binary) -> Expr | None:
    """The function a sum or difference stands for; None when it is ordinary arithmetic."""
    left, right = node.left, node.right
    later = months_of(analyzer, right)
    if later is not None:
        if node.op == "-":
            later = analyzer.call("negative", later)
        return _by_months(analyzer, analyzer.expr(left), later)
    later = months_of(analyzer, left)
    if later is not None:
        value = analyzer.expr(right)
        if node.op == "-" and value.dtype == t.DATE:
            analyzer.fail(
                "[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] a date is not taken from an interval", node
            )
        return _by_months(analyzer, value, later) if node.op == "+" else None
    if isinstance(right, ast.IntervalLiteral):
        if isinstance(left, ast.IntervalLiteral):
            return None
        return _shifted(analyzer, analyzer.expr(left), right, -1 if node.op == "-" else 1)
    if isinstance(left, ast.IntervalLiteral):
        return _shifted(analyzer, analyzer.expr(right), left, 1) if node.op == "+" else None
    a, b = analyzer.expr(left), analyzer.expr(right)
    if node.op == "+" and b.dtype == t.DATE and t.is_integral(a.dtype):
        a, b = b, a
    if a.dtype == t.DATE and t.is_integral(b.dtype):
        return analyzer.call("date_add" if node.op == "+" else "date_sub", a, b)
    if node.op == "-" and a.dtype == b.dtype == t.DATE:
        return analyzer.call("subtract_dates", a, b)
    stamps = [pa.types.is_timestamp(e.dtype) for e in (a, b)]
    if (
        node.op == "-"
        and any(stamps)
        and all(s or e.dtype == t.DATE for s, e in zip(stamps, (a, b), strict=True))
    ):
        wanted = a.dtype if stamps[0] else b.dtype
        return analyzer.call(
            "subtract_timestamps", analyzer.convert.cast(a, wanted), analyzer.convert.cast(b, wanted)
        )
    if pa.types.is_timestamp(a.dtype) and b.dtype == t.DAY_TIME:
        amount = b if node.op == "+" else analyzer.call("negative", b)
        return analyzer.call("timestamp_add_interval", a, amount)
    return None


def months_of(analyzer: ExpressionAnalyzer, node: ast.Expression) -> Expr | None:
    """The months of a year-month interval, as an int; None for anything else.

    There is no type for such intervals, so they exist only where a date or timestamp is next to them.
    """
    match node:
        case ast.IntervalLiteral(is_year_month=True):
            return Literal(node.amount, t.INT)
        case ast.Unary(op="-" | "+"):
            operand = months_of(analyzer, node.operand)
            return analyzer.call("negative", operand) if operand is not None and node.op == "-" else operand
        case ast.Binary(op="+" | "-"):
            sides = [months_of(analyzer, side) for side in (node.left, node.right)]
            if sides[0] is None or sides[1] is None:
                return None
            return analyzer.call("add" if node.op == "+" else "subtract", sides[0], sides[1])
        case ast.Binary(op="*"):
            for interval, other in ((node.left, node.right), (node.right, node.left)):
                months = months_of(analyzer, interval)
                if months is None:
                    continue
                times = analyzer.expr(other)
                if times.dtype not in (t.BYTE, t.SHORT, t.INT):
                    raise Unsupported("A year-month interval is multiplied only by an int here.")
                return analyzer.call("multiply", months, times)
        case ast.Call(name=(name,)) if name.lower() == "make_ym_interval":
            return _made(analyzer, node)
    return None


def _made(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    if len(node.arguments) > 2 or node.over is not None:
        raise PlanError("[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] make_ym_interval takes up to 2 arguments")
    parts: list[Expr] = [Literal(0, t.INT), Literal(0, t.INT)]
    for place, argument in enumerate(node.arguments):
        parts[place] = analyzer.convert.cast(analyzer.expr(argument), t.INT)
    return analyzer.call("add", analyzer.call("multiply", parts[0], Literal(12, t.INT)), parts[1])


def _by_months(analyzer: ExpressionAnalyzer, value: Expr, months: Expr) -> Expr | None:
    if value.dtype == t.DATE:
        return analyzer.call("add_months", value, months)
    if pa.types.is_timestamp(value.dtype):
        return analyzer.call("timestamp_add_months", value, months)
    return None


def _shifted(
    analyzer: ExpressionAnalyzer, value: Expr, interval: ast.IntervalLiteral, sign: int
) -> Expr | None:
    amount = sign * interval.amount
    is_date = value.dtype == t.DATE
    if value.dtype == t.STRING or (not is_date and not pa.types.is_timestamp(value.dtype)):
        return None
    if is_date and interval.start == interval.end == "DAY":
        return analyzer.call("date_add", value, Literal(amount // _DAY, t.INT))
    if is_date:
        value = analyzer.convert.cast(value, t.timestamp(analyzer.facts.time_zone))
    return analyzer.call("timestamp_add_interval", value, Literal(amount, t.DAY_TIME))
