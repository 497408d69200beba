"""Intervals of years and months where they are added to dates and times, and their casts, to which the fields matter."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Cast, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.functions.casts import check_cast
from kquery_spark.functions.registry import EvalMode
from kquery_spark.functions.year_month_intervals import MONTH, YEAR, YEAR_TO_MONTH
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.types import names as t

_NO_NUMBER = Literal(0, t.INT)


@EXPRESSIONS.handles("DateAddYMInterval", "TimestampAddYMInterval", family="values")
def add_months(node: CatalystNode, translate: Translator) -> Expr:
    """A date or timestamp and an interval of years and months."""
    start, interval = node.children
    name = "add_months" if node.cls == "DateAddYMInterval" else "timestamp_add_months"
    return Call.of(name, translate(start), _months(translate(interval)), tz=translate.zone(node))


def cast_of_months(child: Expr, node: CatalystNode, translate: Translator) -> Expr:
    """A cast of an interval of years and months, or to one."""
    if translate.eval_mode(node) is EvalMode.TRY:
        raise Unsupported("try_cast of year-month intervals stays with Spark")
    target = str(node["dataType"])
    if child.dtype == t.YEAR_MONTH:
        return _cast_from(child, node, translate)
    if t.is_string(child.dtype):
        return Call.of("interval_of_text", child, Literal(target, t.STRING))
    if t.is_integral(child.dtype) and target in (YEAR, MONTH):
        number = child if child.dtype == t.INT else Cast(child, t.INT, EvalMode.ANSI)
        parts = (number, _NO_NUMBER) if target == YEAR else (_NO_NUMBER, number)
        return Call.of("make_ym_interval", *parts)
    raise Unsupported(f"a cast of {t.spark_name(child.dtype)} to {target} stays with Spark")


def _cast_from(child: Expr, node: CatalystNode, translate: Translator) -> Expr:
    target = translate.type(node["dataType"])
    if target == t.YEAR_MONTH:
        return Call.of("interval_whole_years", child) if node["dataType"] == YEAR else child
    fields = _fields(node.child("child"), translate)
    if target == t.STRING:
        return Call.of("interval_text", child, Literal(fields, t.STRING))
    if fields == YEAR_TO_MONTH or not (t.is_integral(target) or t.is_decimal(target)):
        raise Unsupported(f"a cast of {fields} to {t.spark_name(target)} stays with Spark")
    number = Call.of("interval_years", child) if fields == YEAR else _months(child)
    if target == t.INT:
        return number
    check_cast(number.dtype, target)
    mode = translate.eval_mode(node) if t.is_decimal(target) else EvalMode.ANSI
    return Cast(number, target, mode)


def _fields(node: CatalystNode, translate: Translator) -> str:
    """Spark's own type of an interval of years and months."""
    known = node.fields.get("dataType")
    return str(known if isinstance(known, str) else translate.facts.jvm_object(node).dataType().typeName())


def _months(interval: Expr) -> Expr:
    """The months of an interval as an int."""
    if isinstance(interval, Literal):
        return Literal(interval.value, t.INT)
    return Call.of("interval_total_months", interval)


__all__ = ["add_months", "cast_of_months"]
