"""Functions whose value is fixed when the query begins: the current time and the session's time zone."""

from __future__ import annotations

from kquery_spark.expr import Expr, Literal
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import ExpressionAnalyzer
from kquery_spark.functions.special_forms import Clock, SessionValue
from kquery_spark.types import names as t


def session_value(analyzer: ExpressionAnalyzer, form: SessionValue) -> Expr:
    """The value of a function that is constant within a query."""
    facts = analyzer.facts
    if form.clock is None:
        return Literal(facts.time_zone, t.STRING)
    assert facts.now_micros is not None, "QueryAnalyzer sets now_micros"
    now = Literal(facts.now_micros, t.timestamp(facts.time_zone))
    if form.clock is Clock.TIMESTAMP:
        return now
    target = t.DATE if form.clock is Clock.DATE else t.TIMESTAMP_NTZ
    return analyzer.convert.cast(now, target, implicit=False)
