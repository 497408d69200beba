"""Parts of dates and timestamps: years to seconds. Timestamps are split in the session's time zone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.functions.registry import (
    CallContext,
    Function,
    accept,
    cast_to,
    register,
)
from kquery_spark.kernels import civil, zones
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector

_SECOND = 1_000_000


def ints(vector: Vector, length: int) -> tuple[Int64s, Any]:
    """The integers underneath and the mask of NULLs (None: none)."""
    return zones.ints(vector.array(length))


def is_stamp(dtype: pa.DataType) -> bool:
    """Whether the type is timestamp or timestamp_ntz."""
    return bool(pa.types.is_timestamp(dtype))


def local(vector: Vector, context: CallContext) -> tuple[Int64s, Any]:
    """Wall-clock microseconds of a timestamp of either kind."""
    micros, mask = ints(vector, context.num_rows)
    return (micros if vector.dtype.tz is None else zones.to_local(micros, context.tz)), mask


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
        days, mask = ints(args[0], context.num_rows)
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


DATE = accept(t.INT, t.DATE)
STAMP = accept(t.INT, is_stamp)
_ALIASES = {"day": ("dayofmonth",)}


def coerce_stamp(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    """Anything that is no timestamp becomes one (its zone is the session's, which the frontend puts in)."""
    return [types[0] if is_stamp(types[0]) else t.timestamp("UTC"), *types[1:]]


def _time_entry(name: str, unit: int, count: int, catalyst: str) -> Function:
    # Catalyst's timeZoneId is the Call's tz; the child is timestamp or timestamp_ntz
    return Function(name, _time_field(unit, count), STAMP, catalyst=(catalyst,), coerce=coerce_stamp)


register(
    # Catalyst casts timestamps to date below these; EXTRACT and DATE_PART are the same classes
    *(
        Function(
            name,
            _date_field(_FIELDS[name]),
            DATE,
            catalyst=(cls,),
            coerce=cast_to(t.DATE),
            aliases=_ALIASES.get(name, ()),
            internal=name == "yearofweek",  # only EXTRACT
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
        internal=True,
    ),
)
