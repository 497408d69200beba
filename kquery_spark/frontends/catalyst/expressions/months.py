"""Year-month intervals: adding them to dates and times, and casts, which depend on their fields."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Cast, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.functions.casts import check_cast
from kquery_spark.functions.datetime.year_month_intervals import MONTH, YEAR, YEAR_TO_MONTH
from kquery_spark.functions.registry import EvalMode
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t

_ZERO = Literal(0, t.INT)


@EXPRESSIONS.handles("DateAddYMInterval", "TimestampAddYMInterval", family="values")
def add_months(node: CatalystNode, translate: Translator) -> Expr:
    """A date or timestamp plus a year-month interval."""
    start, interval = node.children
    name = "add_months" if node.cls == "DateAddYMInterval" else "timestamp_add_months"
    return Call.of(name, translate(start), month_count(translate(interval)), tz=translate.zone(node))


def cast_of_months(child: Expr, node: CatalystNode, translate: Translator) -> Expr:
    """A cast of a year-month interval, or to one."""
    if translate.eval_mode(node) is EvalMode.TRY:
        raise Unsupported("try_cast of year-month intervals is not supported")
    target = str(node["dataType"])
    if child.dtype == t.YEAR_MONTH:
        return _cast_from(child, node, translate)
    if t.is_string(child.dtype):
        return Call.of("interval_of_text", child, Literal(target, t.STRING))
    if t.is_integral(child.dtype) and target in (YEAR, MONTH):
        number = child if child.dtype == t.INT else Cast(child, t.INT, EvalMode.ANSI)
        parts = (number, _ZERO) if target == YEAR else (_ZERO, number)
        return Call.of("make_ym_interval", *parts)
    raise Unsupported(f"a cast of {t.spark_name(child.dtype)} to {target} is not supported")


def _cast_from(child: Expr, node: CatalystNode, translate: Translator) -> Expr:
    target = translate.type(node["dataType"])
    if target == t.YEAR_MONTH:
        return Call.of("interval_whole_years", child) if node["dataType"] == YEAR else child
    source = _spark_type(node.child("child"), translate)
    if target == t.STRING:
        return Call.of("interval_text", child, Literal(source, t.STRING))
    if source == YEAR_TO_MONTH or not (t.is_integral(target) or t.is_decimal(target)):
        raise Unsupported(f"a cast of {source} to {t.spark_name(target)} is not supported")
    number = Call.of("interval_years", child) if source == YEAR else month_count(child)
    if target == t.INT:
        return number
    check_cast(number.dtype, target)
    mode = translate.eval_mode(node) if t.is_decimal(target) else EvalMode.ANSI
    return Cast(number, target, mode)


def _spark_type(node: CatalystNode, translate: Translator) -> str:
    """Spark's name of a year-month interval's type, which contains its fields."""
    known = node.fields.get("dataType")
    return str(known if isinstance(known, str) else translate.facts.jvm_object(node).dataType().typeName())


def month_count(interval: Expr) -> Expr:
    """A year-month interval as an int."""
    if isinstance(interval, Literal):
        return Literal(interval.value, t.INT)
    return Call.of("interval_total_months", interval)
