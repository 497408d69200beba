"""``+`` and ``-`` with dates, timestamps and intervals, which Spark resolves to functions of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.expr import Expr, Literal
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.expressions import ExpressionAnalyzer

_DAY = 86_400_000_000


def temporal_arithmetic(analyzer: ExpressionAnalyzer, node: ast.Binary) -> Expr | None:
    """The function a sum or difference stands for; None when it is ordinary arithmetic."""
    left, right = node.left, node.right
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


def _shifted(
    analyzer: ExpressionAnalyzer, value: Expr, interval: ast.IntervalLiteral, sign: int
) -> Expr | None:
    amount = sign * interval.amount
    is_date = value.dtype == t.DATE
    if value.dtype == t.STRING or (not is_date and not pa.types.is_timestamp(value.dtype)):
        return None
    if interval.is_year_month:
        return analyzer.call(
            "add_months" if is_date else "timestamp_add_months", value, Literal(amount, t.INT)
        )
    if is_date and interval.start == interval.end == "DAY":
        return analyzer.call("date_add", value, Literal(amount // _DAY, t.INT))
    if is_date:
        value = analyzer.convert.cast(value, t.timestamp(analyzer.facts.time_zone))
    return analyzer.call("timestamp_add_interval", value, Literal(amount, t.DAY_TIME))
