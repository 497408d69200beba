"""TRUNC and DATE_TRUNC: the start of the year, month, week, day or time unit of a date or timestamp."""

from __future__ import annotations

from collections.abc import Container, Sequence

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


def _is_no_unit(value: object, units: Container[str]) -> bool:
    """True for a literal that is not the name of a unit: the result is NULL, whatever the date or timestamp is."""
    return value is None or (isinstance(value, str) and value.upper() not in units)


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


register(
    Function(
        "trunc",
        _trunc,
        accept(t.DATE, t.DATE, t.STRING),
        catalyst=("TruncDate",),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        coerce=cast_to(t.DATE, t.STRING),
        null_for=lambda _, values: _is_no_unit(values[1], _LEVELS),
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
        null_for=lambda _, values: _is_no_unit(values[0], {*_LEVELS, *_UNITS}),
        coerce=lambda types: [t.STRING, types[1] if t.is_timestamp(types[1]) else t.timestamp("UTC")],
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
