"""Dates and timestamps: fields, arithmetic, truncation. Timestamps are split in the session's time zone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.errors import ExecutionError, PlanError
from kquery_spark.functions import civil, zones
from kquery_spark.functions.casts.temporal import packed
from kquery_spark.functions.distinct import per_distinct
from kquery_spark.functions.registry import (
    ANSI_RAISES,
    CallContext,
    EvalMode,
    Function,
    accept,
    cast_to,
    register,
)
from kquery_spark.functions.strings import joint_mask, numbers
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector

_DAY = civil.DAY
_SECOND = 1_000_000


def _ints(vector: Vector, length: int) -> tuple[Int64s, Any]:
    return zones.ints(vector.array(length))


def is_stamp(dtype: pa.DataType) -> bool:
    """Whether the type is timestamp or timestamp_ntz."""
    return bool(pa.types.is_timestamp(dtype))


def local(vector: Vector, context: CallContext) -> tuple[Int64s, Any]:
    """Wall-clock microseconds of a timestamp of either kind."""
    micros, mask = _ints(vector, context.num_rows)
    return (micros if vector.dtype.tz is None else zones.to_local(micros, context.tz)), mask


# --- fields ---------------------------------------------------------------------------------------


def _iso_week(days: Int64s) -> tuple[Int64s, Int64s]:
    """Year and week by ISO 8601: the week belongs to the year its Thursday is in."""
    thursday = days - (days + 3) % 7 + 3
    year, _, _ = civil.split(thursday)
    return year, (thursday - civil.join(year, 1, 1)) // 7 + 1


def _day_of_year(days: Int64s) -> Int64s:
    year, _, _ = civil.split(days)
    return days - civil.join(year, 1, 1) + 1


_MANY = 10_000  # days whose fields are looked up in a table

_FIELDS: dict[str, Callable[[Int64s], Int64s]] = {
    "year": lambda d: civil.months_of(d) // 12 + 1970,
    "quarter": lambda d: civil.months_of(d) % 12 // 3 + 1,
    "month": lambda d: civil.months_of(d) % 12 + 1,
    "day": lambda d: civil.split(d)[2],
    "dayofweek": lambda d: (d + 4) % 7 + 1,
    "weekday": lambda d: (d + 3) % 7,
    "dayofyear": _day_of_year,
    "weekofyear": lambda d: _iso_week(d)[1],
    "yearofweek": lambda d: _iso_week(d)[0],
}
_FIELD_CLASSES = {
    "year": "Year",
    "quarter": "Quarter",
    "month": "Month",
    "day": "DayOfMonth",
    "dayofweek": "DayOfWeek",
    "weekday": "WeekDay",
    "dayofyear": "DayOfYear",
    "weekofyear": "WeekOfYear",
    "yearofweek": "YearOfWeek",
}


def _date_field(field: Callable[[Int64s], Int64s]) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        days, mask = _ints(args[0], context.num_rows)
        return pa.array(_of_days(field, days).astype(np.int32, copy=False), mask=mask)

    return run


def _of_days(field: Callable[[Int64s], Int64s], days: Int64s) -> npt.NDArray[Any]:
    """A field of each day, by a table of the days between the first and the last where those are fewer."""
    if len(days) < _MANY:
        return field(days)
    low, high = int(days.min()), int(days.max())
    if high - low > len(days) // 4:
        return field(days)
    table = field(np.arange(low, high + 1)).astype(np.int32)
    return table[days - low] if low else table[days]


def _time_field(unit: int, count: int) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        micros, mask = local(args[0], context)
        return pa.array((micros // unit % count).astype(np.int32), mask=mask)

    return run


def _fraction(args: Sequence[Vector], context: CallContext) -> Data:
    micros, mask = local(args[0], context)
    return pa.array(micros % (60 * _SECOND), t.LONG, mask=mask)


_DATE = accept(t.INT, t.DATE)
_STAMP = accept(t.INT, is_stamp)
_ALIASES = {"day": ("dayofmonth",)}


def coerce_stamp(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    """Anything that is no timestamp becomes one (its zone is the session's, which the frontend puts in)."""
    return [types[0] if is_stamp(types[0]) else t.timestamp("UTC"), *types[1:]]


def _time_entry(name: str, unit: int, count: int, catalyst: str) -> Function:
    # Catalyst's timeZoneId is the Call's tz; the child is timestamp or timestamp_ntz
    return Function(name, _time_field(unit, count), _STAMP, catalyst=(catalyst,), coerce=coerce_stamp)


register(
    # Catalyst casts timestamps to date below these; EXTRACT and DATE_PART are the same classes
    *(
        Function(
            name,
            _date_field(_FIELDS[name]),
            _DATE,
            catalyst=(cls,),
            coerce=cast_to(t.DATE),
            aliases=_ALIASES.get(name, ()),
        )
        for name, cls in _FIELD_CLASSES.items()
    ),
    _time_entry("hour", 3600 * _SECOND, 24, "Hour"),
    _time_entry("minute", 60 * _SECOND, 60, "Minute"),
    _time_entry("second", _SECOND, 60, "Second"),
    # EXTRACT(SECOND FROM ts): decimal(8,6), held as unscaled microseconds
    Function(
        "second_with_fraction",
        _fraction,
        accept(t.decimal(8, 6), is_stamp),
        catalyst=("SecondWithFraction",),
        coerce=coerce_stamp,
    ),
)


# --- arithmetic of dates --------------------------------------------------------------------------


def _wrap32(values: Int64s) -> Int64s:
    return values.astype(np.int32).astype(np.int64)


def _date_shift(sign: int) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        days, _ = _ints(args[0], n)
        return packed(_wrap32(days + sign * numbers(args[1], n)), t.DATE, joint_mask(args, n))

    return run


def _date_diff(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    left, right = (_ints(a, n)[0] for a in args)
    return pa.array((left - right).astype(np.int32), mask=joint_mask(args, n))


def _subtract_dates(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    left, right = (_ints(a, n)[0] for a in args)
    return pa.array((left - right) * _DAY, mask=joint_mask(args, n)).view(t.DAY_TIME)


def _add_months(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    days, _ = _ints(args[0], n)
    return packed(civil.add_months(days, numbers(args[1], n)), t.DATE, joint_mask(args, n))


def _last_day(args: Sequence[Vector], context: CallContext) -> Data:
    days, mask = _ints(args[0], context.num_rows)
    return packed(civil.first_day(civil.months_of(days) + 1) - 1, t.DATE, mask)


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
    def one(day: int, name: str) -> int | None:
        wanted = _WEEKDAYS.get(name.upper())
        if wanted is None:
            if context.mode is EvalMode.ANSI:
                raise ExecutionError("ILLEGAL_DAY_OF_WEEK", f"Illegal input for day of week: {name}.")
            return None
        return day + 1 + (wanted - 4 - 1 - day) % 7

    return per_distinct(one, args, context)


def _make_date(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    year, month, day = (numbers(a, n) for a in args)
    mask = joint_mask(args, n)
    valid = civil.is_valid(np.clip(year, -999_999_999, 999_999_999), month, day)
    valid &= np.abs(year) <= 5_800_000
    bad = ~valid if mask is None else ~valid & ~mask
    if bad.any():
        if context.mode is EvalMode.ANSI:
            raise ExecutionError(
                "DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION", "The date's fields are out of bounds."
            )
        mask = bad if mask is None else mask | bad
    safe = civil.join(np.where(valid, year, 1970), np.where(valid, month, 1), np.where(valid, day, 1))
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
        return days - (days + 3) % 7
    months = civil.months_of(days)
    unit = {"year": 12, "quarter": 3, "month": 1}[level]
    return civil.first_day(months // unit * unit)


def _trunc(args: Sequence[Vector], context: CallContext) -> Data:
    """``trunc(date, format)``; an unknown format gives NULL."""
    n = context.num_rows
    days, mask = _ints(args[0], n)
    if args[1].is_scalar:
        name = args[1].data.as_py()
        level = None if name is None else _LEVELS.get(name.upper())
        return pa.nulls(n, t.DATE) if level is None else packed(_trunc_days(days, level), t.DATE, mask)

    def one(day: int, name: str) -> int | None:
        level = _LEVELS.get(name.upper())
        return None if level is None else int(_trunc_days(np.array([day]), level)[0])

    return per_distinct(one, args, context)


_UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": _SECOND,
    "MINUTE": 60 * _SECOND,
    "HOUR": 3600 * _SECOND,
    "DAY": _DAY,
    "DD": _DAY,
}


def _date_trunc(args: Sequence[Vector], context: CallContext) -> Data:
    """``date_trunc(format, timestamp)``; an unknown format gives NULL."""
    n = context.num_rows
    micros, mask = _ints(args[1], n)
    tz = context.tz
    if args[0].is_scalar:
        name = args[0].data.as_py()
        found = None if name is None else _trunc_micros(micros, name.upper(), tz)
        return pa.nulls(n, context.dtype) if found is None else packed(found, context.dtype, mask)

    def one(name: str, moment: int) -> int | None:
        truncated = _trunc_micros(np.array([moment]), name.upper(), tz)
        return None if truncated is None else int(truncated[0])

    return per_distinct(one, args, context)


def _trunc_micros(micros: Int64s, name: str, tz: str) -> Int64s | None:
    unit = _UNITS.get(name)
    if unit is not None and unit <= _SECOND:
        return np.asarray(micros - micros % unit)
    wall = zones.to_local(micros, tz)
    if unit is not None:
        return zones.near(wall - wall % unit, micros, tz)
    level = _LEVELS.get(name)
    return None if level is None else zones.to_instants(_trunc_days(wall // _DAY, level) * _DAY, tz)


def _months_between(args: Sequence[Vector], context: CallContext) -> Data:
    """Months and 31sts of a month between two timestamps; whole where days agree or both are month ends."""
    n = context.num_rows
    mask = joint_mask(args, n)
    (left, _), (right, _) = local(args[0], context), local(args[1], context)
    rounds = numbers_of_bool(args[2], n) if len(args) > 2 else np.ones(n, np.bool_)
    d1, d2 = left // _DAY, right // _DAY
    s1, s2 = _since_midnight(args[0], d1, context), _since_midnight(args[1], d2, context)
    m1, m2 = civil.months_of(d1), civil.months_of(d2)
    day1, day2 = d1 - civil.first_day(m1) + 1, d2 - civil.first_day(m2) + 1
    ends = (d1 + 1 == civil.first_day(m1 + 1)) & (d2 + 1 == civil.first_day(m2 + 1))
    whole = (m1 - m2).astype(np.float64)
    seconds = (day1 - day2) * 86400 + s1 - s2
    exact = whole + seconds / 2678400.0
    rounded = np.floor(exact * 1e8 + 0.5) / 1e8
    result = np.where((day1 == day2) | ends, whole, np.where(rounds, rounded, exact))
    return pa.array(result, mask=mask)


def _since_midnight(vector: Vector, days: Int64s, context: CallContext) -> Int64s:
    """Seconds that really passed since the day began, an hour more or less on days when clocks change."""
    midnight = days * _DAY
    if vector.dtype.tz is not None:
        midnight = zones.to_instants(midnight, context.tz)
    return (_ints(vector, context.num_rows)[0] - midnight) // _SECOND


def numbers_of_bool(vector: Vector, length: int) -> Any:
    """A boolean argument, False where NULL."""
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
    ),
    Function(
        "date_sub",
        _date_shift(-1),
        accept(t.DATE, t.DATE, t.is_integral),
        catalyst=("DateSub",),
        arity=(2, 2),
        coerce=lambda types: [t.DATE, types[1] if types[1] in (t.BYTE, t.SHORT) else t.INT],
    ),
    Function(
        "datediff",
        _date_diff,
        accept(t.INT, t.DATE),
        catalyst=("DateDiff",),
        arity=(2, 2),
        coerce=cast_to(t.DATE),
        aliases=("date_diff",),
    ),
    # date - date in SQL; legacyInterval must be false
    Function(
        "subtract_dates",
        _subtract_dates,
        accept(t.DAY_TIME, t.DATE),
        catalyst=("SubtractDates",),
        arity=(2, 2),
        coerce=cast_to(t.DATE),
    ),
    # DateAddYMInterval(date, year-month literal): the literal's months as an int literal
    Function(
        "add_months",
        _add_months,
        accept(t.DATE, t.DATE, t.INT),
        catalyst=("AddMonths", "DateAddYMInterval"),
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
        nullable="always",
        raises=ANSI_RAISES,
        coerce=cast_to(t.DATE, t.STRING),
    ),
    Function(
        "make_date",
        _make_date,
        accept(t.DATE, t.INT),
        catalyst=("MakeDate",),
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
        nullable="always",
        coerce=cast_to(t.DATE, t.STRING),
    ),
    # children (format, timestamp); timeZoneId is the Call's tz
    Function(
        "date_trunc",
        _date_trunc,
        accept(lambda types: types[1], t.STRING, t.is_timestamp),
        catalyst=("TruncTimestamp",),
        arity=(2, 2),
        nullable="always",
        coerce=lambda types: [t.STRING, types[1] if t.is_timestamp(types[1]) else t.timestamp("UTC")],
    ),
    Function(
        "months_between",
        _months_between,
        accept(t.DOUBLE, t.is_timestamp, t.is_timestamp, t.BOOL),
        catalyst=("MonthsBetween",),
        arity=(2, 3),
        coerce=lambda types: [
            *(x if t.is_timestamp(x) else t.timestamp("UTC") for x in types[:2]),
            *types[2:],
        ],
    ),
)


# --- timestamps and intervals ---------------------------------------------------------------------


def _add_interval(args: Sequence[Vector], context: CallContext) -> Data:
    """Timestamp plus a day-time interval: whole days move the wall clock, the rest the instant."""
    n = context.num_rows
    micros, _ = _ints(args[0], n)
    step, _ = _ints(args[1], n)
    days = np.sign(step) * (np.abs(step) // _DAY)
    rest = step - days * _DAY
    if args[0].dtype.tz is None:
        moved = micros + step
    else:
        wall = zones.to_local(micros, context.tz) + days * _DAY
        moved = np.where(days == 0, micros, zones.near(wall, micros, context.tz)) + rest
    return packed(moved, context.dtype, joint_mask(args, n))


def _stamp_add_months(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    wall, _ = local(args[0], context)
    moved = civil.add_months(wall // _DAY, numbers(args[1], n)) * _DAY + wall % _DAY
    if args[0].dtype.tz is not None:
        moved = zones.near(moved, _ints(args[0], n)[0], context.tz)
    return packed(moved, context.dtype, joint_mask(args, n))


def _subtract_stamps(args: Sequence[Vector], context: CallContext) -> Data:
    """Difference of the wall clocks (``SubtractTimestamps`` compares local times)."""
    n = context.num_rows
    (left, _), (right, _) = local(args[0], context), local(args[1], context)
    return pa.array(left - right, mask=joint_mask(args, n)).view(t.DAY_TIME)


def _from_units(unit: int) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        values = numbers(args[0], n)
        limit = (2**63 - 1) // unit
        outside = (values > limit) | (values < -limit)
        if outside.any():
            raise ExecutionError("java.lang.ArithmeticException", "long overflow")
        return packed(values * unit, context.dtype, joint_mask(args, n))

    return run


def _to_units(unit: int) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        micros, mask = _ints(args[0], context.num_rows)
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

register(
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
        arity=(2, 2),
    ),
    # the importer and frontends pass dtype=timestamp(session zone) to these three
    Function(
        "timestamp_seconds",
        _from_units(_SECOND),
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
    Function("unix_seconds", _to_units(_SECOND), _SINCE, catalyst=("UnixSeconds",), coerce=coerce_stamp),
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
