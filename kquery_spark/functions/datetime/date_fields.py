"""Extracts fields of dates and timestamps, from years to seconds, in the session's time zone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.functions.registry import (
    CallContext,
    Function,
    JavaMethod,
    VersionChange,
    accept,
    cast_to,
    register,
)
from kquery_spark.kernels import civil, zones
from kquery_spark.types import names as t
from kquery_spark.types.units import MICRO_NANOS, SECOND_MICROS
from kquery_spark.types.vector import Data, Int64s, Vector


def ints(vector: Vector, length: int) -> tuple[Int64s, Any]:
    """The integers of a vector's physical form, and the mask of NULLs (None without NULLs)."""
    return zones.ints(vector.array(length))


def is_stamp(dtype: pa.DataType) -> bool:
    """Return whether the type is timestamp or timestamp_ntz."""
    return bool(pa.types.is_timestamp(dtype))


def local(vector: Vector, context: CallContext) -> tuple[Int64s, Any]:
    """Wall-clock microseconds of a timestamp of either kind."""
    micros, mask = ints(vector, context.num_rows)
    return (micros if vector.dtype.tz is None else zones.to_local(micros, context.tz)), mask


def _iso_week(days: Int64s) -> tuple[Int64s, Int64s]:
    """Year and week of ISO 8601, in which a week belongs to the year of its Thursday."""
    thursday = days - civil.weekday(days) + 3
    year, _, _ = civil.split(thursday)
    return year, (thursday - civil.days_of_dates(year, 1, 1)) // 7 + 1


def _day_of_year(days: Int64s) -> Int64s:
    year, _, _ = civil.split(days)
    return days - civil.days_of_dates(year, 1, 1) + 1


_MIN_TABLE_DAYS = 10_000  # minimum number of rows for which a lookup table of days pays


def _date_field(field: Callable[[Int64s], Int64s]) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        days, mask = ints(args[0], context.num_rows)
        return pa.array(_field_of_days(field, days).astype(np.int32, copy=False), mask=mask)

    return run


def _field_of_days(field: Callable[[Int64s], Int64s], days: Int64s) -> npt.NDArray[Any]:
    """A field of each day; with at least four rows per day between the first and the last, by a lookup table of days."""
    if len(days) < _MIN_TABLE_DAYS:
        return field(days)
    low, high = int(days.min()), int(days.max())
    if high - low > len(days) // 4:
        return field(days)
    table = field(np.arange(low, high + 1)).astype(np.int32)
    return table[days - low] if low else table[days]


def _clock_micros(vector: Vector, context: CallContext) -> tuple[Int64s, Any]:
    """Wall-clock microseconds of a timestamp, or of a time since midnight."""
    if vector.dtype != t.TIME:
        return local(vector, context)
    nanos, mask = ints(vector, context.num_rows)
    return nanos // MICRO_NANOS, mask


def _time_field(unit: int, count: int) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        micros, mask = _clock_micros(args[0], context)
        return pa.array((micros // unit % count).astype(np.int32), mask=mask)

    return run


def _fraction(args: Sequence[Vector], context: CallContext) -> Data:
    micros, mask = _clock_micros(args[0], context)
    return pa.array(micros % (60 * SECOND_MICROS), t.LONG, mask=mask)


_NO_TIMES = (VersionChange("has no times", lambda types, _: types[0] == t.TIME, since=(4, 1)),)
DATE = accept(t.INT, t.DATE)


def _has_clock(dtype: pa.DataType) -> bool:
    """Return whether the type has hours: a timestamp of either kind, or a time."""
    return is_stamp(dtype) or bool(dtype == t.TIME)


def _coerce_clock(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    """Cast arguments other than times of day to timestamp."""
    return types if types[0] == t.TIME else coerce_stamp(types)


def coerce_stamp(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    """Cast arguments other than timestamps to timestamp; the frontend sets the session's time zone."""
    return [types[0] if is_stamp(types[0]) else t.timestamp("UTC"), *types[1:]]


def _date_entry(
    name: str,
    catalyst: str,
    field: Callable[[Int64s], Int64s],
    distinct_values: float | None,
    date_fields: tuple[str, ...] = (),
    **options: Any,
) -> Function:
    # Catalyst casts timestamps to date below these; EXTRACT and DATE_PART are the same classes
    return Function(
        name,
        _date_field(field),
        DATE,
        catalyst=(catalyst,),
        coerce=cast_to(t.DATE),
        distinct_values=distinct_values,
        date_fields=date_fields,
        **options,
    )


def _time_entry(name: str, unit: int, count: int, catalyst: str, date_fields: tuple[str, ...]) -> Function:
    # Catalyst's timeZoneId is the Call's tz; the child is timestamp or timestamp_ntz
    return Function(
        name,
        _time_field(unit, count),
        accept(t.INT, _has_clock),
        catalyst=(catalyst,),
        coerce=_coerce_clock,
        distinct_values=count + 1.0,
        date_fields=date_fields,
        java=(JavaMethod("DateTimeUtils", f"get{catalyst}sOfTime"),),
        changes=_NO_TIMES,
    )


register(
    # few tables span more years
    _date_entry(
        "year",
        "Year",
        lambda d: civil.month_numbers(d) // 12 + 1970,
        30.0,
        ("YEAR", "Y", "YEARS", "YR", "YRS"),
    ),
    _date_entry(
        "quarter", "Quarter", lambda d: civil.month_numbers(d) % 12 // 3 + 1, 5.0, ("QUARTER", "QTR")
    ),
    _date_entry(
        "month", "Month", lambda d: civil.month_numbers(d) % 12 + 1, 13.0, ("MONTH", "MON", "MONS", "MONTHS")
    ),
    _date_entry(
        "day",
        "DayOfMonth",
        lambda d: civil.split(d)[2],
        32.0,
        ("DAY", "D", "DAYS"),
        aliases=("dayofmonth",),
    ),
    _date_entry("dayofweek", "DayOfWeek", lambda d: (d + 4) % 7 + 1, 8.0, ("DAYOFWEEK", "DOW")),
    _date_entry("weekday", "WeekDay", civil.weekday, 8.0),
    _date_entry("dayofyear", "DayOfYear", _day_of_year, 367.0, ("DOY",)),
    _date_entry("weekofyear", "WeekOfYear", lambda d: _iso_week(d)[1], 54.0, ("WEEK", "W", "WEEKS")),
    # only EXTRACT
    _date_entry("yearofweek", "YearOfWeek", lambda d: _iso_week(d)[0], None, ("YEAROFWEEK",), internal=True),
    _time_entry("hour", 3600 * SECOND_MICROS, 24, "Hour", ("HOUR", "H", "HOURS", "HR", "HRS")),
    _time_entry("minute", 60 * SECOND_MICROS, 60, "Minute", ("MINUTE", "M", "MIN", "MINS", "MINUTES")),
    _time_entry("second", SECOND_MICROS, 60, "Second", ()),
    # EXTRACT(SECOND FROM ts): decimal(8,6), held as unscaled microseconds
    Function(
        "second_with_fraction",
        _fraction,
        accept(t.decimal(8, 6), _has_clock),
        catalyst=("SecondWithFraction",),
        coerce=_coerce_clock,
        date_fields=("SECOND", "S", "SEC", "SECONDS", "SECS"),
        internal=True,
        java=(JavaMethod("DateTimeUtils", "getSecondsOfTimeWithFraction", ((1, 6),)),),
        changes=_NO_TIMES,
    ),
)
