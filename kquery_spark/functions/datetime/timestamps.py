"""Arithmetic of timestamps in the session's time zone, and their conversions from and to numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError, PlanError
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.casts.temporal import packed
from kquery_spark.functions.core.arguments import joint_mask, numbers
from kquery_spark.functions.datetime.date_fields import coerce_stamp, ints, is_stamp, local
from kquery_spark.functions.datetime.dates import NO_LEGACY_INTERVAL
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    CallContext,
    Function,
    accept,
    cast_to,
    first_argument_type,
    register,
    register_internal,
)
from kquery_spark.kernels import civil, zones
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS, SECOND_MICROS
from kquery_spark.types.vector import Data, Int64s, Vector, true_flags


def _add_interval(args: Sequence[Vector], context: CallContext) -> Data:
    """Add a day-time interval to a timestamp: whole days move the wall clock, the remainder moves the instant."""
    n = context.num_rows
    micros, _ = ints(args[0], n)
    step, _ = ints(args[1], n)
    days = np.sign(step) * (np.abs(step) // DAY_MICROS)
    rest = step - days * DAY_MICROS
    if args[0].dtype.tz is None:
        moved = civil.add_micros(micros, step)
    else:
        wall = civil.add_micros(zones.to_local(micros, context.tz), days * DAY_MICROS)
        moved = civil.add_micros(
            np.where(days == 0, micros, zones.to_instants_near(wall, micros, context.tz)), rest
        )
    return packed(moved, context.dtype, joint_mask(args, n))


def _stamp_add_months(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    wall, _ = local(args[0], context)
    moved = civil.timestamp_micros(
        civil.add_months(wall // DAY_MICROS, numbers(args[1], n)), wall % DAY_MICROS
    )
    if args[0].dtype.tz is not None:
        moved = zones.to_instants_near(moved, ints(args[0], n)[0], context.tz)
    return packed(moved, context.dtype, joint_mask(args, n))


def _subtract_stamps(args: Sequence[Vector], context: CallContext) -> Data:
    """Return the difference of the wall-clock times, as in Spark's ``SubtractTimestamps``."""
    n = context.num_rows
    (left, _), (right, _) = local(args[0], context), local(args[1], context)
    mask = joint_mask(args, n)
    return pa.array(civil.subtract_micros(right, left, mask), mask=mask).view(t.DAY_TIME)


def _months_between(args: Sequence[Vector], context: CallContext) -> Data:
    """Months between two timestamps, with a fraction in 31sts of a month.

    The result is a whole number if both have the same day of the month, or if both are the last day of a month.
    """
    n = context.num_rows
    mask = joint_mask(args, n)
    (left, _), (right, _) = local(args[0], context), local(args[1], context)
    rounds = true_flags(args[2].array(n)) if len(args) > 2 else np.ones(n, np.bool_)
    d1, d2 = left // DAY_MICROS, right // DAY_MICROS
    s1, s2 = _since_midnight(args[0], d1, context), _since_midnight(args[1], d2, context)
    m1, m2 = civil.month_numbers(d1), civil.month_numbers(d2)
    day1, day2 = d1 - civil.first_day(m1) + 1, d2 - civil.first_day(m2) + 1
    ends = (d1 + 1 == civil.first_day(m1 + 1)) & (d2 + 1 == civil.first_day(m2 + 1))
    whole = (m1 - m2).astype(np.float64)
    seconds = (day1 - day2) * 86400 + s1 - s2
    exact = whole + seconds / 2678400.0
    rounded = np.floor(exact * 1e8 + 0.5) / 1e8
    result = np.where((day1 == day2) | ends, whole, np.where(rounds, rounded, exact))
    return pa.array(result, mask=mask)


def _since_midnight(vector: Vector, days: Int64s, context: CallContext) -> Int64s:
    """Seconds of physical time since midnight, which differ from the wall clock by an hour after clocks were changed."""
    midnight = civil.timestamp_micros(days)
    if vector.dtype.tz is not None:
        midnight = zones.to_instants(midnight, context.tz)
    return (ints(vector, context.num_rows)[0] - midnight) // SECOND_MICROS


def _from_units(unit: int) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        values = numbers(args[0], n)
        limit = (2**63 - 1) // unit
        outside = (values > limit) | (values < (-limit if unit > 1 else -(2**63)))
        if outside.any():
            raise ExecutionError("DATETIME_OVERFLOW", "Datetime operation overflow: long overflow.")
        return packed(values * unit, context.dtype, joint_mask(args, n))

    return run


def _to_units(unit: int) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        micros, mask = ints(args[0], context.num_rows)
        return pa.array(micros // unit, mask=mask)

    return run


def _unix_date(args: Sequence[Vector], context: CallContext) -> Data:
    return args[0].data.view(t.INT)


def _from_unix_date(args: Sequence[Vector], context: CallContext) -> Data:
    return args[0].data.view(t.DATE)


def _with_months(types: Sequence[pa.DataType]) -> pa.DataType:
    if not is_stamp(types[0]) or types[1] != t.INT:
        raise PlanError(f"cannot add months to {t.spark_name(types[0])}")
    return types[0]


_TO_STAMP = accept(t.timestamp("UTC"), t.is_integral)
_SINCE = accept(t.LONG, t.is_timestamp)

register_internal(
    # TimestampAddInterval(timestamp, day-time interval) in Spark 4.3 (TimeAdd before); tz of the Call is timeZoneId
    Function(
        "timestamp_add_interval",
        _add_interval,
        accept(first_argument_type, is_stamp, t.DAY_TIME),
        catalyst=("TimestampAddInterval", "TimeAdd"),
        arity=(2, 2),
    ),
    # TimestampAddYMInterval(timestamp, year-month literal): the literal's months as an int literal
    Function(
        "timestamp_add_months",
        _stamp_add_months,
        _with_months,
        catalyst=("TimestampAddYMInterval",),
        arity=(2, 2),
    ),
    # legacyInterval must be false
    Function(
        "subtract_timestamps",
        _subtract_stamps,
        accept(t.DAY_TIME, is_stamp),
        catalyst=("SubtractTimestamps",),
        parameters=NO_LEGACY_INTERVAL,
        arity=(2, 2),
    ),
)
register(
    Function(
        "months_between",
        _months_between,
        accept(t.DOUBLE, t.is_timestamp, t.is_timestamp, t.BOOL),
        catalyst=("MonthsBetween",),
        calls=CallForm(columns=(0, 1), adds=(2, ", true")),
        arity=(2, 3),
        coerce=lambda types: [
            *(x if t.is_timestamp(x) else t.timestamp("UTC") for x in types[:2]),
            *types[2:],
        ],
    ),
    # the importer and frontends pass dtype=timestamp(session zone) to these three
    Function(
        "timestamp_seconds",
        _from_units(SECOND_MICROS),
        _TO_STAMP,
        catalyst=("SecondsToTimestamp",),
        raises=ALWAYS_RAISES,
    ),
    Function(
        "timestamp_millis",
        _from_units(1000),
        _TO_STAMP,
        catalyst=("MillisToTimestamp",),
        raises=ALWAYS_RAISES,
    ),
    Function("timestamp_micros", _from_units(1), _TO_STAMP, catalyst=("MicrosToTimestamp",)),
    Function(
        "unix_seconds", _to_units(SECOND_MICROS), _SINCE, catalyst=("UnixSeconds",), coerce=coerce_stamp
    ),
    Function("unix_millis", _to_units(1000), _SINCE, catalyst=("UnixMillis",), coerce=coerce_stamp),
    Function("unix_micros", _to_units(1), _SINCE, catalyst=("UnixMicros",), coerce=coerce_stamp),
    Function("unix_date", _unix_date, accept(t.INT, t.DATE), catalyst=("UnixDate",), coerce=cast_to(t.DATE)),
    Function(
        "date_from_unix_date",
        _from_unix_date,
        accept(t.DATE, t.INT),
        catalyst=("DateFromUnixDate",),
        coerce=cast_to(t.INT),
    ),
)
