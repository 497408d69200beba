"""Reads the values of literals from the plan's JSON if it is exact, otherwise from the JVM.

The JSON contains ``Literal.value.toString``, which is exact for booleans, numbers, dates, intervals and ``timestamp_ntz``.
It is not exact for other types: a timestamp is printed as local time without an offset (ambiguous in the hour in which
clocks are set back), a binary as an object address, arrays, maps and structs without quotes, and malformed UTF-8 as U+FFFD.
Under the time parser policy LEGACY, a date in the year -44 is printed with the year 0045. These values are read from the
JVM.
"""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa

from kquery_spark.spark_bridge.plan.literal_values import from_text, scalar
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types.spark_json import arrow_type

_EPOCH = datetime.date(1970, 1, 1)


def literal(node: CatalystNode, facts: Facts, time_zone: str) -> pa.Scalar:
    """The value of a Literal expression, as a scalar of its Arrow type."""
    spark = node["dataType"]
    arrow = arrow_type(spark, time_zone)
    text = node.fields["value"]
    if text is None:
        return pa.scalar(None, arrow)
    if _json_is_exact(spark, text, facts):
        return scalar(_days(text) if spark == "date" else from_text(text, arrow), arrow)
    return scalar(facts.literal_value(node), arrow)


def _json_is_exact(spark: Any, text: str, facts: Facts) -> bool:
    if isinstance(spark, dict) or spark in ("timestamp", "binary"):
        return False
    if spark == "date":
        return facts.prints_exact_dates
    return spark != "string" or "\ufffd" not in text


def _days(text: str) -> int:
    """Days since 1970 of a proleptic Gregorian date, also for years outside of Python's range from 1 to 9999."""
    sign = -1 if text.startswith("-") else 1
    year, month, day = (int(part) for part in text.lstrip("+-").split("-"))
    # The calendar repeats every 400 years, which are 146097 days.
    shift = (sign * year - 2000) // 400
    return (datetime.date(sign * year - shift * 400, month, day) - _EPOCH).days + shift * 146097
