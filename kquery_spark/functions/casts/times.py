"""Casts of times of day: from and to strings, to numbers, and from timestamps."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.functions.casts.strings import WHITESPACE, parse
from kquery_spark.functions.casts.table import TIME_DECIMALS, cast_rule
from kquery_spark.functions.casts.temporal import whole_seconds
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.registry import CallContext
from kquery_spark.kernels import civil, zones
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS, MICRO_NANOS, SECOND_NANOS
from kquery_spark.types.vector import Data, Int64s, Vector, widen

_REGULAR = r"\A([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?\z"
_TIME = re.compile(
    r"T?(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]*))?)?"
)
_HALF_OF_DAY = re.compile(r"(.*?) ?([aApP])[mM]", re.DOTALL)


def time_array(nanos: Int64s, mask: np.ndarray | None) -> pa.Array:
    """Build a time array from nanoseconds since midnight."""
    return pa.array(nanos, mask=mask).view(t.TIME)


def parse_time(value: str, decimals: int = TIME_DECIMALS) -> int | None:
    """Parse one string like Spark's ``stringToTime`` to nanoseconds since midnight; None if it is malformed.

    decimals: further decimals of a second are truncated.
    """
    text, half = value.strip(WHITESPACE), None
    match = _HALF_OF_DAY.fullmatch(text)
    if match is not None:
        text, half = match[1].rstrip(WHITESPACE), match[2].lower()
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    if half is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((match["fraction"] or "")[:decimals].ljust(9, "0"))
    return (hour * 3600 + minute * 60 + second) * SECOND_NANOS + fraction


@cast_rule("string", "time")
def _string_time(vector: Vector, context: CallContext) -> Data:
    return parse(vector, context, _REGULAR, _regular_times, parse_time)


def _regular_times(strings: pa.Array) -> pa.Array:
    """Parse regular times by Arrow as timestamps on an arbitrary day, because Arrow cannot parse times."""
    stamps = pc.binary_join_element_wise("1970-01-01 ", strings, "")
    return stamps.cast(pa.timestamp("ns")).view(t.LONG).view(t.TIME)


@cast_rule("time", "string")
def _time_string(vector: Vector, context: CallContext) -> Data:
    """Print ``HH:mm:ss`` and the decimals of the second without trailing zeros."""
    nanos, mask = zones.ints(vector.data)
    seconds, fraction = nanos // SECOND_NANOS, nanos % SECOND_NANOS
    clock = [
        civil.digits(seconds // 3600, 2),
        b":",
        civil.digits(seconds // 60 % 60, 2),
        b":",
        civil.digits(seconds % 60, 2),
    ]
    whole = civil.fixed_width_strings(clock, len(nanos), mask)
    if not fraction.any():
        return whole
    exact = civil.fixed_width_strings([*clock, b".", civil.digits(fraction, 9)], len(nanos), mask)
    return pc.if_else(pa.array(fraction == 0), whole, pc.utf8_rtrim(exact, characters="0"))


@cast_rule("time", "integral")
def _time_int(vector: Vector, context: CallContext) -> Data:
    """The whole seconds since midnight."""
    nanos, mask = zones.ints(vector.data)
    return whole_seconds(nanos // SECOND_NANOS, mask, vector.dtype, context)


@cast_rule("time", "decimal")
def _time_decimal(vector: Vector, context: CallContext) -> Data:
    """The seconds since midnight, with their decimals."""
    nanos, mask = zones.ints(vector.data)
    exact = widen(pa.array(nanos, mask=mask), t.decimal(18, 9))
    return dk.round_to_decimal128(exact.cast(pa.decimal256(76, 9)), context)


@cast_rule("timestamp", "time")
def _timestamp_time(vector: Vector, context: CallContext) -> Data:
    instants, mask = zones.ints(vector.data)
    return time_array(zones.to_local(instants, context.tz) % DAY_MICROS * MICRO_NANOS, mask)


@cast_rule("timestamp_ntz", "time")
def _ntz_time(vector: Vector, context: CallContext) -> Data:
    local, mask = zones.ints(vector.data)
    return time_array(local % DAY_MICROS * MICRO_NANOS, mask)
