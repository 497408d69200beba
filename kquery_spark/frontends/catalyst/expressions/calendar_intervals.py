"""Calendar intervals. The engine has no type for them, but can add constant ones and those of ``make_interval``."""

from __future__ import annotations

import re
from decimal import Decimal

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.functions.datetime import calendar_intervals
from kquery_spark.functions.registry import function
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t
from kquery_spark.types.units import SECOND_MICROS

# The units in Spark's string of an interval: the count (months, days or microseconds) that each adds to, and its factor.
_UNITS = {
    "years": (0, 12),
    "months": (0, 1),
    "days": (1, 1),
    "hours": (2, 3600 * SECOND_MICROS),
    "minutes": (2, 60 * SECOND_MICROS),
    "seconds": (2, SECOND_MICROS),
}
_COUNT_TYPES = (t.INT, t.INT, t.LONG)
_PART = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?) ([a-z]+)")


@EXPRESSIONS.handles(
    *("TimestampAddInterval", "TimeAdd"),
    family="values",
    partly="a day-time interval, a constant or make_interval",
)
def add_interval(node: CatalystNode, translate: Translator) -> Expr:
    """Translate the sum of a timestamp and a calendar interval."""
    start, interval = node.children
    if interval.cls == "MakeInterval":
        counts = _counts_of_fields(interval, translate)
    elif interval.cls == "UnaryMinus" and interval.children[0].cls == "MakeInterval":
        counts = tuple(
            Call.of("negative", count) for count in _counts_of_fields(interval.children[0], translate)
        )
    elif interval.cls == "Literal" and interval["dataType"] == "interval":
        counts = _constant(str(interval["value"]))
    else:
        return translate.call(function("timestamp_add_interval"), node)
    translate.check_fields(node)
    return Call.of(calendar_intervals.ADDITION, translate(start), *counts, tz=translate.zone(node))


def _counts_of_fields(node: CatalystNode, translate: Translator) -> tuple[Expr, ...]:
    """Return the counts of ``make_interval``; if they overflow, the query falls back for Spark's error or NULL."""
    translate.check_fields(node, "failOnError")
    years, months, weeks, days, *clock = map(translate, node.children)
    return (
        Call.of(calendar_intervals.MONTHS, years, months),
        Call.of(calendar_intervals.DAYS, weeks, days),
        Call.of(calendar_intervals.MICROS, *clock),
    )


def _constant(text: str) -> tuple[Expr, ...]:
    """The counts of months, days and microseconds in Spark's string of a calendar interval."""
    counts = [0, 0, 0]
    for part in re.findall(r"\S+ \S+", text):
        match = _PART.fullmatch(part)
        if match is None or match[2] not in _UNITS:
            raise Unsupported(f"the constant interval {text!r} is not supported")
        position, unit = _UNITS[match[2]]
        counts[position] += int(Decimal(match[1]) * unit)
    return tuple(Literal(count, dtype) for count, dtype in zip(counts, _COUNT_TYPES, strict=True))
