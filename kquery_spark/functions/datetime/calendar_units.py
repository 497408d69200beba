"""TIMESTAMPADD, TIMESTAMPDIFF, MAKE_TIMESTAMP, conversion between time zones, and names of days and months."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.casts.temporal import packed
from kquery_spark.functions.core.arguments import joint_mask, numbers, unscaled_digits
from kquery_spark.functions.datetime.calendar_names import DAYS_SHORT, MONTHS_SHORT
from kquery_spark.functions.datetime.date_fields import is_stamp, local
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    ANSI_RAISES,
    COLUMN,
    CallContext,
    CatalystParameters,
    EvalMode,
    Function,
    accept,
    cast_to,
    first_argument_type,
    register,
)
from kquery_spark.kernels import civil, zones
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS, SECOND_MICROS
from kquery_spark.types.vector import Data, Int64s, Vector

_MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": SECOND_MICROS,
    "MINUTE": 60 * SECOND_MICROS,
    "HOUR": 3600 * SECOND_MICROS,
    "DAY": DAY_MICROS,
    "DAYOFYEAR": DAY_MICROS,
    "WEEK": 7 * DAY_MICROS,
}
_MAX_YEARS = 999_999_999  # the largest year of java.time
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _literal(vector: Vector) -> Any:
    """The value of a literal argument. If all arguments are literals, the first one is a column of one row."""
    return (vector.data if vector.is_scalar else vector.data[0]).as_py()


def _unit(vector: Vector) -> str:
    return str(_literal(vector)).upper()


def _add(args: Sequence[Vector], context: CallContext) -> Data:
    try:
        return _timestamp_add(args, context)
    except civil.OutOfRange:
        raise ExecutionError("DATETIME_OVERFLOW", "Datetime operation overflow.") from None


def _timestamp_add(args: Sequence[Vector], context: CallContext) -> Data:
    """``timestampadd(unit, count, timestamp)``: days and longer units move the wall clock, shorter ones the instant."""
    n = context.num_rows
    unit = _unit(args[0])
    count, mask = numbers(args[1], n), joint_mask(args[1:], n)
    micros, _ = zones.ints(args[2].array(n))
    zoned = args[2].dtype.tz is not None
    if mask is not None:
        count = np.where(mask, 0, count)
    step = _MONTHS.get(unit)
    limit = (2**63 - 1) // _MICROS[unit] if step is None else (2**31 - 1) // step
    if limit < 2**63 - 1 and ((count > limit) | (count < -limit)).any():
        raise civil.OutOfRange
    wall = zones.to_local(micros, context.tz) if zoned else micros
    if step is not None:
        moved = civil.timestamp_micros(civil.add_months(wall // DAY_MICROS, count * step), wall % DAY_MICROS)
        moved = zones.to_instants_near(moved, micros, context.tz) if zoned else moved
        return packed(moved, context.dtype, mask)
    moving = count * _MICROS[unit]
    if not zoned or unit not in ("DAY", "DAYOFYEAR", "WEEK"):
        return packed(civil.add_micros(micros, moving), context.dtype, mask)
    shifted = np.where(
        count == 0, micros, zones.to_instants_near(civil.add_micros(wall, moving), micros, context.tz)
    )
    return packed(shifted, context.dtype, mask)


def _toward_zero(values: Int64s, unit: int) -> Int64s:
    return np.asarray(np.sign(values) * (np.abs(values) // unit))


def _diff(args: Sequence[Vector], context: CallContext) -> Data:
    """``timestampdiff(unit, start, end)``: the number of whole units between the wall-clock times, rounded toward zero."""
    n = context.num_rows
    unit = _unit(args[0])
    mask = joint_mask(args[1:], n)
    (start, _), (end, _) = local(args[1], context), local(args[2], context)
    if unit in ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR"):
        return pa.array(_toward_zero(civil.subtract_micros(start, end, mask), _MICROS[unit]), mask=mask)
    first, last = start // DAY_MICROS, end // DAY_MICROS
    early, late = start % DAY_MICROS, end % DAY_MICROS
    last = last - ((last > first) & (late < early)) + ((last < first) & (late > early))
    if unit not in _MONTHS:
        return pa.array(_toward_zero(last - first, _MICROS[unit] // DAY_MICROS), mask=mask)
    packed_days = [
        civil.month_numbers(d) * 32 + d - civil.first_day(civil.month_numbers(d)) for d in (first, last)
    ]
    months = _toward_zero(packed_days[1] - packed_days[0], 32)
    return pa.array(_toward_zero(months, _MONTHS[unit]), mask=mask)


def _check_unit(values: Sequence[object]) -> None:
    unit = values[0]
    if not isinstance(unit, str) or unit.upper() not in {*_MICROS, *_MONTHS}:
        raise Unsupported(f"the unit {unit} of timestamps is not supported")


# --- fields to timestamps -------------------------------------------------------------------------


def _make(args: Sequence[Vector], context: CallContext) -> Data:
    """Build timestamps of year, month, day, hour, minute and decimal(16, 6) seconds; 60 seconds are the next minute."""
    n = context.num_rows
    mask = joint_mask(args, n)
    year, month, day, hour, minute = (numbers(a, n) for a in args[:5])
    seconds = (
        unscaled_digits(args[5], n).astype(np.int32).astype(np.int64)
    )  # Spark stores them in an int, which may overflow
    ok = (np.abs(year) <= _MAX_YEARS) & civil.is_valid(np.clip(year, -_MAX_YEARS, _MAX_YEARS), month, day)
    ok &= (hour >= 0) & (hour < 24) & (minute >= 0) & (minute < 60)
    late = (seconds > 60 * SECOND_MICROS) & (seconds < 61 * SECOND_MICROS)
    ok &= (seconds >= 0) & (seconds <= 60 * SECOND_MICROS)
    bad = ~ok if mask is None else ~ok & ~mask
    if bad.any():
        if context.mode is EvalMode.ANSI:
            if (late & bad).any():
                raise ExecutionError(
                    "INVALID_FRACTION_OF_SECOND", "Valid range for seconds is [0, 60] (inclusive)."
                )
            raise ExecutionError(
                "DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION", "A field of a timestamp is out of bounds."
            )
        mask = bad if mask is None else mask | bad
    days = civil.days_of_dates(np.where(ok, year, 1970), np.where(ok, month, 1), np.where(ok, day, 1))
    wall = civil.add_micros(
        civil.timestamp_micros(days), np.where(ok, (hour * 3600 + minute * 60) * SECOND_MICROS + seconds, 0)
    )
    moment = wall if context.dtype.tz is None else zones.to_instants(wall, context.tz)
    return packed(moment, context.dtype, mask)


# --- zones ----------------------------------------------------------------------------------------


def _zone_shift(from_utc: bool) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        micros, mask = zones.ints(args[0].array(context.num_rows))
        zone = args[1].data.as_py()
        if zone is None:
            return pa.nulls(context.num_rows, context.dtype)
        moved = zones.to_local(micros, zone) if from_utc else zones.to_instants(micros, zone)
        return packed(moved, context.dtype, mask)

    return run


def _convert(args: Sequence[Vector], context: CallContext) -> Data:
    """``convert_timezone(source, target, wall clock)``."""
    source, target = map(_literal, args[:2])
    if source is None or target is None:
        return pa.nulls(context.num_rows, context.dtype)
    micros, mask = zones.ints(args[2].array(context.num_rows))
    return packed(zones.to_local(zones.to_instants(micros, source), target), context.dtype, mask)


def _check_zone(values: Sequence[object]) -> None:
    _check_zone_name(values[1])


def _check_zones(values: Sequence[object]) -> None:
    _check_zone_name(values[0])
    _check_zone_name(values[1])


def _check_zone_name(zone: object) -> None:
    if zone is COLUMN:
        raise Unsupported("the time zone must be a literal")
    if isinstance(zone, str):
        zones.to_local(np.zeros(1, np.int64), zone)


# --- names ----------------------------------------------------------------------------------------


def _name(names: Sequence[str], index_of: Callable[[Int64s], Int64s]) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        days, mask = zones.ints(args[0].array(context.num_rows))
        return pa.array(names, t.STRING).take(pa.array(index_of(days), mask=mask))

    return run


def _moved_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if types[0] != t.STRING or types[1] != t.LONG or not is_stamp(types[2]):
        raise PlanError("timestampadd takes a unit, a bigint and a timestamp")
    return types[2]


_STAMPS = lambda types: [t.STRING, *(x if is_stamp(x) else t.timestamp("UTC") for x in types[1:])]  # noqa: E731

register(
    # the unit, a parameter of TimestampAdd and TimestampDiff, is the first argument, a literal
    Function(
        "timestampadd",
        _add,
        _moved_type,
        arity=(3, 3),
        unit_words=("TIMESTAMPADD", "DATEADD", "DATE_ADD"),
        raises=ALWAYS_RAISES,
        check_values=_check_unit,
        coerce=lambda types: [t.STRING, t.LONG, types[2] if is_stamp(types[2]) else t.timestamp("UTC")],
    ),
    Function(
        "timestampdiff",
        _diff,
        accept(t.LONG, t.STRING, is_stamp, is_stamp),
        arity=(3, 3),
        unit_words=("TIMESTAMPDIFF", "DATEDIFF", "DATE_DIFF", "TIMEDIFF"),
        check_values=_check_unit,
        coerce=_STAMPS,
    ),
    # dataType of MakeTimestamp is the result's; failOnError is the mode
    Function(
        "make_timestamp",
        _make,
        accept(t.timestamp("UTC"), t.INT, t.INT, t.INT, t.INT, t.INT, t.decimal(16, 6)),
        catalyst=("MakeTimestamp",),
        parameters=CatalystParameters(ignored=("dataType",)),
        arity=(6, 6),
        raises=ANSI_RAISES,
        coerce=cast_to(t.INT, t.INT, t.INT, t.INT, t.INT, t.decimal(16, 6)),
        calls=CallForm(columns=tuple(range(9))),
    ),
    *(
        Function(
            name,
            _zone_shift(from_utc),
            accept(first_argument_type, t.is_timestamp, t.STRING),
            catalyst=(cls,),
            arity=(2, 2),
            check_values=_check_zone,
            zones=(1,),
            coerce=lambda types: [types[0] if t.is_timestamp(types[0]) else t.timestamp("UTC"), t.STRING],
        )
        for name, from_utc, cls in (
            ("from_utc_timestamp", True, "FromUTCTimestamp"),
            ("to_utc_timestamp", False, "ToUTCTimestamp"),
        )
    ),
    Function(
        "convert_timezone",
        _convert,
        accept(t.TIMESTAMP_NTZ, t.STRING, t.STRING, t.TIMESTAMP_NTZ),
        catalyst=("ConvertTimezone",),
        arity=(3, 3),
        check_values=_check_zones,
        zones=(0, 1),
        coerce=cast_to(t.STRING, t.STRING, t.TIMESTAMP_NTZ),
        calls=CallForm(columns=(2,)),
    ),
    Function(
        "dayname",
        _name(DAYS_SHORT, civil.weekday),
        accept(t.STRING, t.DATE),
        catalyst=("DayName",),
        coerce=cast_to(t.DATE),
    ),
    Function(
        "monthname",
        _name(MONTHS_SHORT, lambda d: civil.month_numbers(d) % 12),
        accept(t.STRING, t.DATE),
        catalyst=("MonthName",),
        coerce=cast_to(t.DATE),
    ),
)
