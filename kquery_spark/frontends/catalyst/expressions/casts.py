"""Translates casts, each with its own evaluation mode."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Cast, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.months import cast_of_months
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.frontends.catalyst.expressions.variants import cast_of_variant
from kquery_spark.frontends.catalyst.versions import CAST
from kquery_spark.functions.casts import TIME_DECIMALS, can_raise, check_cast, prints_decimals
from kquery_spark.functions.registry import EvalMode
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t
from kquery_spark.types.spark_json import decimals_of_time, is_exact_in_arrow


@EXPRESSIONS.handles("Cast", family="casts", partly="pairs of types that the engine casts exactly as Spark")
def cast(node: CatalystNode, translate: Translator) -> Expr:
    """Translate a cast; the mode is read from the JVM only if it can affect the result."""
    child = translate.with_variants(node.child("child"))
    target = translate.type(node["dataType"])
    if child.dtype == t.VARIANT:
        return cast_of_variant(child, target, node, translate)
    if t.YEAR_MONTH in (child.dtype, target) and child.dtype != t.NULL:
        return cast_of_months(child, node, translate)
    if target == t.DAY_TIME and not str(node["dataType"]).endswith("second"):
        raise Unsupported(f"a cast to {node['dataType']}, which cuts off smaller units, is not supported")
    if target == t.TIME:
        return cast_to_time(child, node, translate)
    if t.is_nested(target) and child.dtype != t.NULL and not is_exact_in_arrow(node["dataType"]):
        raise Unsupported(
            "a cast of nested values that cuts off units of times or intervals is not supported"
        )
    if child.dtype == target:
        return child
    if isinstance(child, Call) and child.dtype == t.NULL:  # the call returns NULL or raises an error
        return replace(child, type=target)
    check_cast(child.dtype, target)
    translate.check_version(node, CAST, (child, Literal(None, target)))
    matters = can_raise(child.dtype, target, EvalMode.ANSI) or prints_decimals(child.dtype, target)
    mode = translate.eval_mode(node) if matters else EvalMode.ANSI
    return Cast(child, target, mode, translate.zone(node))


def cast_to_time(child: Expr, node: CatalystNode, translate: Translator) -> Expr:
    """Translate a cast to a time of day, which truncates decimals of a second that the type does not have."""
    decimals = Literal(decimals_of_time(node["dataType"]), t.INT)
    if child.dtype == t.TIME or (isinstance(child, Literal) and child.value is None):
        time = child if child.dtype == t.TIME else Literal(None, t.TIME)
    else:
        check_cast(child.dtype, t.TIME)
        translate.check_version(node, CAST, (child, Literal(None, t.TIME), decimals))
        mode = translate.eval_mode(node) if t.is_string(child.dtype) else EvalMode.ANSI
        time = Cast(child, t.TIME, mode, translate.zone(node))
    return time if decimals.value == TIME_DECIMALS else Call.of("cut_time", time, decimals)


@EXPRESSIONS.handles("CheckOverflow", family="casts")
def check_overflow(node: CatalystNode, translate: Translator) -> Expr:
    """Translate CheckOverflow, which rounds to a decimal type; overflow is NULL or an error, depending on the node."""
    child = translate(node.child("child"))
    target = translate.type(node["dataType"])
    if not t.is_decimal(child.dtype):
        raise Unsupported(f"CheckOverflow of {t.spark_name(child.dtype)} is not supported")
    if child.dtype == target:
        return child
    return Cast(child, target, EvalMode.TRY if node["nullOnOverflow"] else EvalMode.ANSI, translate.time_zone)
