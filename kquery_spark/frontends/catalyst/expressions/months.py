"""Intervals of years and months, which have no type in the engine: where they are added, they are numbers of months."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Cast, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.functions.registry import EvalMode
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.types import names as t

_MONTHS_A_YEAR = Literal(12, t.INT)


@EXPRESSIONS.handles(
    "DateAddYMInterval",
    "TimestampAddYMInterval",
    family="values",
    partly="an interval that is a constant, made of years and months, or one of these times a whole number",
)
def add_months(node: CatalystNode, translate: Translator) -> Expr:
    """A date or timestamp and an interval of years and months."""
    start, interval = node.children
    name = "add_months" if node.cls == "DateAddYMInterval" else "timestamp_add_months"
    return Call.of(name, translate(start), _months(interval, translate), tz=translate.zone(node))


@EXPRESSIONS.handles(
    "MakeYMInterval", "MultiplyYMInterval", family="values", partly="added to a date or timestamp"
)
def interval_of_months(node: CatalystNode, translate: Translator) -> Expr:
    """An interval of months where it is not added: it would need a type of its own."""
    raise Unsupported(f"{node.cls} that is not added to a date or timestamp stays with Spark")


def _months(interval: CatalystNode, translate: Translator) -> Expr:
    """The months of an interval as an int; one with too many raises, as it does in Spark."""
    match interval.cls:
        case "Literal" if interval["value"] is not None and str(interval["dataType"]).startswith("interval "):
            return Literal(int(interval["value"]), t.INT)
        case "MakeYMInterval":
            years, months = (translate(child) for child in interval.children)
            return Call.of("add", Call.of("multiply", years, _MONTHS_A_YEAR), months)
        case "MultiplyYMInterval":
            of, count = interval.children
            factor = translate(count)
            if t.is_integral(factor.dtype):
                product = Call.of("multiply", _as(t.LONG, _months(of, translate)), _as(t.LONG, factor))
                return _as(t.INT, product)
        case "UnaryMinus":
            return Call.of("negative", _months(interval.children[0], translate))
    raise Unsupported(
        "adding a year-month interval that is neither a constant nor made of columns stays with Spark"
    )


def _as(dtype: pa.DataType, number: Expr) -> Expr:
    return number if number.dtype == dtype else Cast(number, dtype, EvalMode.ANSI)
