"""Arithmetic and truncation of dates and timestamps, in the session's time zone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import THREE_COLUMNS, TWO_COLUMNS, CallForm
from kquery_spark.functions.casts.temporal import packed
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.datetime.date_fields import coerce_stamp, ints, is_stamp, local
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ANSI_RAISES,
    CallContext,
    CatalystParameters,
    EvalMode,
    Function,
    Nullability,
    accept,
    cast_to,
    register,
    register_internal,
)
from kquery_spark.functions.strings.basics import joint_mask, numbers
from kquery_spark.kernels import civil, zones
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS, SECOND_MICROS
from kquery_spark.types.vector import Data, Int64s, Vector


def _wrap32(values: Int64s) -> Int64s:
    return values.astype(np.int32).astype(np.int64)


def _int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def _date_shift(sign: int) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        days, _ = ints(args[0], n)
        return packed(_wrap32(days + sign * numbers(args[1], n)), t.DATE, joint_mask(args, n))

    return run


def _date_diff(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    left, right = (ints(a, n)[0] for a in args)
    return pa.array((left - right).astype(np.int32), mask=joint_mask(args, n))


def _subtract_dates(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    left, right = (ints(a, n)[0] for a in args)
    return pa.array(civil.timestamp_micros(left - right), mask=joint_mask(args, n)).view(t.DAY_TIME)


def _add_months(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    days, _ = ints(args[0], n)
    return packed(civil.add_months(days, numbers(args[1], n)), t.DATE, joint_mask(args, n))


def _last_day(args: Sequence[Vector], context: CallContext) -> Data:
    days, mask = ints(args[0], context.num_rows)
    return packed(civil.first_day(civil.month_numbers(days) + 1) - 1, t.DATE, mask)


_WEEKDAYS = {
    name: i
    for i, names in enumerate(
        (
            ("SU", "SUN", "SUNDAY"),
            ("MO", "MON", "MONDAY"),
            ("TU", "TUE", "TUESDAY"),
            ("WE", "WED", "WEDNESDAY"),
            ("TH", "THU", "THURSDAY"),
            ("FR", "FRI", "FRIDAY"),
            ("SA", "SAT", "SATURDAY"),
        )
    )
    for name in names
}


def _next_day(args: Sequence[Vector], context: CallContext) -> Data:
    def evaluate(day: int, name: str) -> int | None:
        weekday = _WEEKDAYS.get(name.upper())
        if weekday is None:
            if context.mode is EvalMode.ANSI:
                raise ExecutionError("ILLEGAL_DAY_OF_WEEK", f"Illegal input for day of week: {name}.")
            return None
        return _int32(day + 1 + _int32((weekday + 3) % 7 - 1 - day) % 7)

    return per_distinct(evaluate, args, context)


def _make_date(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    year, month, day = (numbers(a, n) for a in args)
    mask = joint_mask(args, n)
    valid = civil.is_valid(np.clip(year, -999_999_999, 999_999_999), month, day)
    valid &= np.abs(year) <= 999_999_999
    bad = ~valid if mask is None else ~valid & ~mask
    if bad.any():
        if context.mode is EvalMode.ANSI:
            raise ExecutionError(
                "DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION", "The date's fields are out of bounds."
            )
        mask = bad if mask is None else mask | bad
    safe = civil.days_of_dates(
        np.where(valid, year, 1970), np.where(valid, month, 1), np.where(valid, day, 1)
    )
    return packed(safe, t.DATE, mask)


_LEVELS = {
    "YEAR": "year",
    "YYYY": "year",
    "YY": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "MON": "month",
    "MM": "month",
    "WEEK": "week",
}


def _trunc_days(days: Int64s, level: str) -> Int64s:
    if level == "week":
        return days - civil.weekday(days)
    months = civil.month_numbers(days)
    unit = {"year": 12, "quarter": 3, "month": 1}[level]
    return civil.first_day(months // unit * unit)


def _trunc(args: Sequence[Vector], context: CallContext) -> Data:
    """``trunc(date, format)``; NULL for an unknown format."""
    n = context.num_rows
    days, mask = ints(args[0], n)
    if args[1].is_scalar:
        name = args[1].data.as_py()
        level = None if name is None else _LEVELS.get(name.upper())
        return pa.nulls(n, t.DATE) if level is None else packed(_trunc_days(days, level), t.DATE, mask)

    def evaluate(day: int, name: str) -> int | None:
        level = _LEVELS.get(name.upper())
        return None if level is None else int(_trunc_days(np.array([day]), level)[0])

    return per_distinct(evaluate, args, context)


_UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": SECOND_MICROS,
    "MINUTE": 60 * SECOND_MICROS,
    "HOUR": 3600 * SECOND_MICROS,
    "DAY": DAY_MICROS,
    "DD": DAY_MICROS,
}


def _date_trunc(args: Sequence[Vector], context: CallContext) -> Data:
    """``date_trunc(format, timestamp)``; NULL for an unknown format."""
    n = context.num_rows
    micros, mask = ints(args[1], n)
    tz = context.tz
    if args[0].is_scalar:
        name = args[0].data.as_py()
        truncated_micros = None if name is None else _trunc_micros(micros, name.upper(), tz)
        return (
            pa.nulls(n, context.dtype)
            if truncated_micros is None
            else packed(truncated_micros, context.dtype, mask)
        )

    def evaluate(name: str, moment: int) -> int | None:
        truncated = _trunc_micros(np.array([moment]), name.upper(), tz)
        return None if truncated is None else int(truncated[0])

    return per_distinct(evaluate, args, context)


def can_truncate(function: str, unit: str) -> bool:
    """Return whether ``trunc`` or ``date_trunc`` knows the unit."""
    return unit.upper() in _LEVELS or (function == "date_trunc" and unit.upper() in _UNITS)


def _trunc_micros(micros: Int64s, name: str, tz: str) -> Int64s | None:
    unit = _UNITS.get(name)
    if unit is not None and unit <= SECOND_MICROS:
        return civil.add_micros(micros, -(micros % unit))
    wall = zones.to_local(micros, tz)
    if unit is not None:
        return zones.to_instants_near(civil.add_micros(wall, -(wall % unit)), micros, tz)
    level = _LEVELS.get(name)
    if level is None:
        return None
    midnight = civil.timestamp_micros(_trunc_days(wall // DAY_MICROS, level))
    instants = zones.to_instants(midnight, tz)
    if (instants != zones.to_instants_near(midnight, micros, tz)).any():
        # the earlier one until Spark 4.2, the one of the time's own offset since
        raise Unsupported("a date_trunc to a midnight that happens twice depends on Spark's version")
    return instants


def _months_between(args: Sequence[Vector], context: CallContext) -> Data:
    """Months between two timestamps, with a fraction in 31sts of a month.

    The result is a whole number if both have the same day of the month, or if both are the last day of a month.
    """
    n = context.num_rows
    mask = joint_mask(args, n)
    (left, _), (right, _) = local(args[0], context), local(args[1], context)
    rounds = numbers_of_bool(args[2], n) if len(args) > 2 else np.ones(n, np.bool_)
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


def numbers_of_bool(vector: Vector, length: int) -> Any:
    """The values of a Boolean argument; False for NULL."""
    array = vector.array(length)
    return (array.fill_null(False) if array.null_count else array).to_numpy(zero_copy_only=False)


def _dates_only(result: pa.DataType, *kinds: Any) -> Any:
    return accept(result, *kinds)


register(
    Function(
        "date_add",
        _date_shift(1),
        accept(t.DATE, t.DATE, t.is_integral),
        catalyst=("DateAdd",),
        arity=(2, 2),
        coerce=lambda types: [t.DATE, types[1] if types[1] in (t.BYTE, t.SHORT) else t.INT],
        aliases=("dateadd",),
        calls=CallForm(columns=(0, 1), shown_as="date_add"),
    ),
    Function(
        "date_sub",
        _date_shift(-1),
        accept(t.DATE, t.DATE, t.is_integral),
        catalyst=("DateSub",),
        calls=TWO_COLUMNS,
        arity=(2, 2),
        coerce=lambda types: [t.DATE, types[1] if types[1] in (t.BYTE, t.SHORT) else t.INT],
    ),
    Function(
        "datediff",
        _date_diff,
        accept(t.INT, t.DATE),
        catalyst=("DateDiff",),
        calls=TWO_COLUMNS,
        arity=(2, 2),
        coerce=cast_to(t.DATE),
        aliases=("date_diff",),
    ),
)
_NO_LEGACY_INTERVAL = CatalystParameters(fixed=(("legacyInterval", False),))

register_internal(
    # date - date in SQL; legacyInterval must be false
    Function(
        "subtract_dates",
        _subtract_dates,
        accept(t.DAY_TIME, t.DATE),
        catalyst=("SubtractDates",),
        parameters=_NO_LEGACY_INTERVAL,
        arity=(2, 2),
        coerce=cast_to(t.DATE),
    ),
)
register(
    # DateAddYMInterval(date, year-month literal): the literal's months as an int literal
    Function(
        "add_months",
        _add_months,
        accept(t.DATE, t.DATE, t.INT),
        catalyst=("AddMonths", "DateAddYMInterval"),
        calls=TWO_COLUMNS,
        arity=(2, 2),
        coerce=cast_to(t.DATE, t.INT),
    ),
    Function("last_day", _last_day, accept(t.DATE, t.DATE), catalyst=("LastDay",), coerce=cast_to(t.DATE)),
    # failOnError is the mode
    Function(
        "next_day",
        _next_day,
        accept(t.DATE, t.DATE, t.STRING),
        catalyst=("NextDay",),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        evaluates=(0, 1),
        raises=ANSI_RAISES,
        coerce=cast_to(t.DATE, t.STRING),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    Function(
        "make_date",
        _make_date,
        accept(t.DATE, t.INT),
        catalyst=("MakeDate",),
        calls=THREE_COLUMNS,
        arity=(3, 3),
        raises=ANSI_RAISES,
        coerce=cast_to(t.INT),
    ),
    Function(
        "trunc",
        _trunc,
        accept(t.DATE, t.DATE, t.STRING),
        catalyst=("TruncDate",),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        coerce=cast_to(t.DATE, t.STRING),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    # children (format, timestamp); timeZoneId is the Call's tz
    Function(
        "date_trunc",
        _date_trunc,
        accept(lambda types: types[1], t.STRING, t.is_timestamp),
        catalyst=("TruncTimestamp",),
        calls=CallForm(columns=(1,)),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        coerce=lambda types: [t.STRING, types[1] if t.is_timestamp(types[1]) else t.timestamp("UTC")],
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
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
)


# --- timestamps and intervals ---------------------------------------------------------------------


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
    """The difference of the wall-clock times, as in Spark's ``SubtractTimestamps``."""
    n = context.num_rows
    (left, _), (right, _) = local(args[0], context), local(args[1], context)
    mask = joint_mask(args, n)
    return pa.array(civil.subtract_micros(right, left, mask), mask=mask).view(t.DAY_TIME)


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
        accept(lambda types: types[0], is_stamp, t.DAY_TIME),
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
        parameters=_NO_LEGACY_INTERVAL,
        arity=(2, 2),
    ),
)
register(
    # the importer and frontends pass dtype=timestamp(session zone) to these three
    Function(
        "timestamp_seconds",
        _from_units(SECOND_MICROS),
        _TO_STAMP,
        catalyst=("SecondsToTimestamp",),
        raises=frozenset(EvalMode),
    ),
    Function(
        "timestamp_millis",
        _from_units(1000),
        _TO_STAMP,
        catalyst=("MillisToTimestamp",),
        raises=frozenset(EvalMode),
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
