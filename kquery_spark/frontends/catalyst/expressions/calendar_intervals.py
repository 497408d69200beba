"""Calendar intervals: the engine has no type for them, but a constant one of days and less is a day-time interval."""

from __future__ import annotations

import re
from decimal import Decimal

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.functions.registry import function
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS

_ADDITION = "timestamp_add_interval"
_MICROS = {"days": DAY_MICROS, "hours": 3_600_000_000, "minutes": 60_000_000, "seconds": 1_000_000}
_PART = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?) ([a-z]+)")


@EXPRESSIONS.handles(
    *("TimestampAddInterval", "TimeAdd"),
    family="values",
    partly="a day-time interval, or a constant of days and less than a day",
)
def add_interval(node: CatalystNode, translate: Translator) -> Expr:
    """A timestamp and an interval."""
    start, interval = node.children
    if interval.cls != "Literal" or interval["dataType"] != "interval":
        return translate.call(function(_ADDITION), node)
    translate.check_fields(node)
    micros = day_time_micros(interval["value"])
    return Call.of(_ADDITION, translate(start), Literal(micros, t.DAY_TIME), tz=translate.zone(node))


def day_time_micros(text: str) -> int:
    """The microseconds of a calendar interval as Spark prints it; Unsupported where they do not say what is added.

    A day-time interval adds its whole days by the calendar and the rest by the clock, a calendar interval its days
    and its hours, however many these are.
    """
    parts = [_PART.fullmatch(part) for part in re.findall(r"\S+ \S+", text)]
    units: dict[str, int] = {}
    for part in parts:
        if part is None or part[2] not in _MICROS:
            raise Unsupported("adding a calendar interval of months or years stays with Spark")
        units[part[2]] = int(Decimal(part[1]) * _MICROS[part[2]])
    days = units.pop("days", 0)
    clock = sum(units.values())
    if abs(clock) >= DAY_MICROS or days * clock < 0:
        raise Unsupported("adding a calendar interval of a day's hours or more stays with Spark")
    return days + clock
