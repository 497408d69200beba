"""TRUNC and DATE_TRUNC: the start of the year, month, week, day or time unit of a date or timestamp."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.casts.temporal import packed
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.datetime.date_fields import ints
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    CallContext,
    Function,
    Nullability,
    accept,
    cast_to,
    register,
)
from kquery_spark.kernels import civil, zones
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS, SECOND_MICROS
from kquery_spark.types.vector import Data, Int64s, Vector

_CALENDAR_UNITS = {
    "YEAR": "year",
    "YYYY": "year",
    "YY": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "MON": "month",
    "MM": "month",
    "WEEK": "week",
}


def _trunc_days(days: Int64s, unit: str) -> Int64s:
    if unit == "week":
        return days - civil.weekday(days)
    months = civil.month_numbers(days)
    unit_months = {"year": 12, "quarter": 3, "month": 1}[unit]
    return civil.first_day(months // unit_months * unit_months)


def _trunc(args: Sequence[Vector], context: CallContext) -> Data:
    """``trunc(date, format)``; NULL for an unknown format."""
    n = context.num_rows
    days, mask = ints(args[0], n)
    if args[1].is_scalar:
        name = args[1].data.as_py()
        unit = None if name is None else _CALENDAR_UNITS.get(name.upper())
        return pa.nulls(n, t.DATE) if unit is None else packed(_trunc_days(days, unit), t.DATE, mask)

    def evaluate(day: int, name: str) -> int | None:
        unit = _CALENDAR_UNITS.get(name.upper())
        return None if unit is None else int(_trunc_days(np.array([day]), unit)[0])

    return per_distinct(evaluate, args, context)


_MICROS_OF_UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": SECOND_MICROS,
    "MINUTE": 60 * SECOND_MICROS,
    "HOUR": 3600 * SECOND_MICROS,
    "DAY": DAY_MICROS,
    "DD": DAY_MICROS,
}
_TIMESTAMP_UNITS = frozenset({*_CALENDAR_UNITS, *_MICROS_OF_UNITS})


def _date_trunc(args: Sequence[Vector], context: CallContext) -> Data:
    """``date_trunc(format, timestamp)``; NULL for an unknown format."""
    n = context.num_rows
    micros, mask = ints(args[1], n)
    tz = context.tz
    if args[0].is_scalar:
        name = args[0].data.as_py()
        truncated = None if name is None else _trunc_micros(micros, name.upper(), tz)
        return pa.nulls(n, context.dtype) if truncated is None else packed(truncated, context.dtype, mask)

    def evaluate(name: str, moment: int) -> int | None:
        truncated = _trunc_micros(np.array([moment]), name.upper(), tz)
        return None if truncated is None else int(truncated[0])

    return per_distinct(evaluate, args, context)


def _is_unknown_unit(value: object, units: Collection[str]) -> bool:
    """Return True for a literal that is not the name of a unit: the result is NULL for every date or timestamp."""
    return value is None or (isinstance(value, str) and value.upper() not in units)


def _trunc_micros(micros: Int64s, name: str, tz: str) -> Int64s | None:
    """Truncate timestamps to a unit, given in upper case; None for an unknown unit."""
    unit_micros = _MICROS_OF_UNITS.get(name)
    if unit_micros is not None and unit_micros <= SECOND_MICROS:
        return civil.add_micros(micros, -(micros % unit_micros))
    wall = zones.to_local(micros, tz)
    if unit_micros is not None:
        return zones.to_instants_near(civil.add_micros(wall, -(wall % unit_micros)), micros, tz)
    unit = _CALENDAR_UNITS.get(name)
    if unit is None:
        return None
    midnight = civil.timestamp_micros(_trunc_days(wall // DAY_MICROS, unit))
    instants = zones.to_instants(midnight, tz)
    if (instants != zones.to_instants_near(midnight, micros, tz)).any():
        # the earlier one until Spark 4.2, the one of the time's own offset since
        raise Unsupported("a date_trunc to a midnight that happens twice depends on Spark's version")
    return instants


register(
    Function(
        "trunc",
        _trunc,
        accept(t.DATE, t.DATE, t.STRING),
        catalyst=("TruncDate",),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        coerce=cast_to(t.DATE, t.STRING),
        null_for=lambda _, values: _is_unknown_unit(values[1], _CALENDAR_UNITS),
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
        null_for=lambda _, values: _is_unknown_unit(values[0], _TIMESTAMP_UNITS),
        coerce=lambda types: [t.STRING, types[1] if t.is_timestamp(types[1]) else t.timestamp("UTC")],
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
