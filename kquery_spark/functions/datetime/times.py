"""Functions of times of day, which are stored as nanoseconds since midnight."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import THREE_COLUMNS, TWO_COLUMNS
from kquery_spark.functions.casts.times import parse_time, time_array
from kquery_spark.functions.core.arguments import joint_mask, numbers, unscaled_digits
from kquery_spark.functions.core.attempts import null_on_error_if_try
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    CallContext,
    EvalMode,
    Function,
    JavaMethod,
    Kernel,
    VersionChange,
    accept,
    cast_to,
    register,
    register_internal,
)
from kquery_spark.kernels import civil, zones
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_NANOS, INT64_MAX, MICRO_NANOS, SECOND_MICROS, SECOND_NANOS
from kquery_spark.types.vector import Data, Int64s, Vector

_OWNER = "DateTimeUtils"
_MILLI_NANOS = 1000 * MICRO_NANOS
_MINUTE_NANOS = 60 * SECOND_NANOS
_HOUR_NANOS = 60 * _MINUTE_NANOS
_UNIT_NANOS = {
    "HOUR": _HOUR_NANOS,
    "MINUTE": _MINUTE_NANOS,
    "SECOND": SECOND_NANOS,
    "MILLISECOND": _MILLI_NANOS,
    "MICROSECOND": MICRO_NANOS,
}
_SECONDS = t.decimal(16, 6)
_SINCE_4_1 = (VersionChange("has no times", since=(4, 1)),)
_SINCE_4_2 = (VersionChange("has no such function", since=(4, 2)),)
_MOST_MICROS = INT64_MAX // MICRO_NANOS  # the largest interval whose nanoseconds fit into 64 bits
_NANOS_DIGITS = 9  # decimals of a second


def _counts(vector: Vector, length: int) -> Int64s:
    """The nanoseconds of times, or the microseconds of intervals; 0 for NULL."""
    return zones.ints(vector.array(length))[0]


def _out_of_bounds(message: str) -> ExecutionError:
    return ExecutionError("DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION", message)


def _cut(args: Sequence[Vector], context: CallContext) -> Data:
    """Truncate times to a number of decimals of a second."""
    n = context.num_rows
    nanos = _counts(args[0], n)
    unit = np.power(10, _NANOS_DIGITS - numbers(args[1], n), dtype=np.int64)
    return time_array(nanos - nanos % unit, joint_mask(args, n))


def _make(args: Sequence[Vector], context: CallContext) -> Data:
    """Build times of hours, minutes and decimal(16, 6) seconds."""
    n = context.num_rows
    mask = joint_mask(args, n)
    hours, minutes, micros = numbers(args[0], n), numbers(args[1], n), unscaled_digits(args[2], n)
    fields = (
        ("HourOfDay", hours, 24),
        ("MinuteOfHour", minutes, 60),
        ("SecondOfMinute", micros, 60 * SECOND_MICROS),
    )
    for name, values, limit in fields:
        wrong = (values < 0) | (values >= limit)
        if (wrong if mask is None else wrong & ~mask).any():
            raise _out_of_bounds(f"Invalid value for {name}.")
    return time_array(hours * _HOUR_NANOS + minutes * _MINUTE_NANOS + micros * MICRO_NANOS, mask)


def _parse(args: Sequence[Vector], context: CallContext) -> Data:
    """Parse strings to times like a cast, but with all nanoseconds."""

    def evaluate(text: str) -> int:
        nanos = parse_time(text, _NANOS_DIGITS)
        if nanos is None:
            raise ExecutionError(
                "CANNOT_PARSE_TIME",
                f"The input string '{text}' cannot be parsed to a TIME value because it does not match to the "
                "datetime format 'HH:mm:ss.SSSSSS'.",
            )
        return nanos

    return per_distinct(null_on_error_if_try(evaluate, context), args, context)


def _unit(vector: Vector) -> int:
    name = vector.array(1)[0].as_py()  # the same for all rows
    return 1 if name is None else _UNIT_NANOS[name.upper()]


def _check_unit(values: Sequence[object]) -> None:
    unit = values[0]
    if unit is not None and not (isinstance(unit, str) and unit.upper() in _UNIT_NANOS):
        raise Unsupported("a unit that is not a constant between hours and microseconds is not supported")


def _difference(args: Sequence[Vector], context: CallContext) -> Data:
    """The number of whole units between two times."""
    n = context.num_rows
    unit = _unit(args[0])
    gap = _counts(args[2], n) - _counts(args[1], n)
    return pa.array((gap - np.fmod(gap, unit)) // unit, mask=joint_mask(args, n))


def _truncate(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    nanos = _counts(args[1], n)
    return time_array(nanos - nanos % _unit(args[0]), joint_mask(args, n))


def _add(args: Sequence[Vector], context: CallContext) -> Data:
    """Add an interval to a time; the last argument is the number of decimals of a second in the result."""
    n = context.num_rows
    mask, nanos, micros = joint_mask(args, n), _counts(args[0], n), _counts(args[2], n)
    present = np.ones(n, np.bool_) if mask is None else ~mask
    if (present & (np.abs(micros.astype(np.float64)) > _MOST_MICROS)).any():
        raise ExecutionError("ARITHMETIC_OVERFLOW", "long overflow")
    within_a_day = np.abs(micros) <= DAY_NANOS // MICRO_NANOS
    total = nanos + np.where(within_a_day, micros, 0) * MICRO_NANOS
    if (present & ~(within_a_day & (total >= 0) & (total < DAY_NANOS))).any():
        raise ExecutionError(
            "DATETIME_OVERFLOW", "Datetime operation overflow: a time is from 00:00:00 to 23:59:59.999999."
        )
    unit = np.power(10, _NANOS_DIGITS - numbers(args[4], n), dtype=np.int64)
    return time_array(total - total % unit, mask)


def _subtract(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    gap = _counts(args[0], n) - _counts(args[1], n)
    micros = (gap - np.fmod(gap, MICRO_NANOS)) // MICRO_NANOS
    return pa.array(micros, mask=joint_mask(args, n)).view(t.DAY_TIME)


def _from_number(unit: int) -> Kernel:
    """Build the kernel that converts a number of units since midnight to a time; decimal numbers are seconds."""

    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        mask, size = joint_mask(args, n), unit
        if t.is_decimal(args[0].dtype):
            counts, size = unscaled_digits(args[0], n), unit // 10 ** args[0].dtype.scale
        else:
            counts = numbers(args[0], n)
        inside = (counts >= 0) & (counts < DAY_NANOS // size)
        if not (inside if mask is None else inside | mask).all():
            raise _out_of_bounds("Invalid TIME value: must be between 00:00:00 and 23:59:59.999999999.")
        return time_array(np.where(inside, counts, 0) * size, mask)

    return run


def _seconds_type(types: Sequence[pa.DataType]) -> pa.DataType:
    dtype = types[0]
    exact = t.is_decimal(dtype) and dtype.scale <= 6 and dtype.precision <= 18
    if not (t.is_integral(dtype) or exact):
        raise PlanError(f"{t.spark_name(dtype)} seconds are not made a time by the engine")
    return t.TIME


def _to_number(unit: int) -> Kernel:
    """Build the kernel that returns the whole units since midnight of a time."""

    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        return pa.array(_counts(args[0], n) // unit, mask=joint_mask(args, n))

    return run


def _timestamp_at(args: Sequence[Vector], context: CallContext) -> Data:
    """The timestamp of a date and a time of day, in the time zone of the optional third argument."""
    n = context.num_rows
    mask = joint_mask(args, n)
    days, nanos = zones.ints(args[0].array(n))[0], _counts(args[1], n)
    local = civil.timestamp_micros(days if mask is None else np.where(mask, 0, days), nanos // MICRO_NANOS)
    micros = local if context.dtype.tz is None else zones.to_instants(local, context.dtype.tz)
    return pa.array(micros, mask=mask).view(context.dtype)


def _zoned(types: Sequence[pa.DataType], values: Sequence[object]) -> pa.DataType:
    zone = values[2]
    if not isinstance(zone, str):
        raise Unsupported("a time zone that is not a constant is not supported")
    return t.timestamp(zone)


def _java(method: str, mode: EvalMode = EvalMode.ANSI) -> tuple[JavaMethod, ...]:
    return (JavaMethod(_OWNER, method, mode=mode),)


def _from_entry(
    name: str, method: str, unit: int, result: Callable[[Sequence[pa.DataType]], pa.DataType]
) -> Function:
    return Function(
        name, _from_number(unit), result, raises=ALWAYS_RAISES, java=_java(method), changes=_SINCE_4_2
    )


def _to_entry(name: str, method: str, unit: int, dtype: pa.DataType) -> Function:
    return Function(name, _to_number(unit), accept(dtype, t.TIME), java=_java(method), changes=_SINCE_4_2)


register(
    Function(
        "make_time",
        _make,
        accept(t.TIME, t.INT, t.INT, _SECONDS),
        arity=(3, 3),
        raises=ALWAYS_RAISES,
        coerce=cast_to(t.INT, t.INT, _SECONDS),
        calls=THREE_COLUMNS,
        java=_java("makeTime"),
        changes=_SINCE_4_1,
    ),
    Function(
        "to_time",
        _parse,
        accept(t.TIME, t.STRING),
        raises=frozenset({EvalMode.ANSI, EvalMode.LEGACY}),
        encoded=True,
        coerce=cast_to(t.STRING),
        calls=TWO_COLUMNS,  # the second is the format, with which it falls back to Spark
        changes=(VersionChange("keeps no more than microseconds", lambda types, _: types[0] == t.STRING),),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    Function(
        "time_diff",
        _difference,
        accept(t.LONG, t.STRING, t.TIME),
        arity=(3, 3),
        check_values=_check_unit,
        coerce=cast_to(t.STRING, t.TIME),
        calls=THREE_COLUMNS,
        java=_java("timeDiff"),
        changes=_SINCE_4_1,
    ),
    Function(
        "time_trunc",
        _truncate,
        accept(t.TIME, t.STRING, t.TIME),
        arity=(2, 2),
        check_values=_check_unit,
        coerce=cast_to(t.STRING, t.TIME),
        calls=TWO_COLUMNS,
        java=_java("timeTrunc"),
        changes=_SINCE_4_1,
    ),
    _from_entry("time_from_seconds", "timeFromSeconds", SECOND_NANOS, _seconds_type),
    _from_entry("time_from_millis", "timeFromMillis", _MILLI_NANOS, accept(t.TIME, t.is_integral)),
    _from_entry("time_from_micros", "timeFromMicros", MICRO_NANOS, accept(t.TIME, t.is_integral)),
    # microseconds, held as the digits of a decimal
    _to_entry("time_to_seconds", "timeToSeconds", MICRO_NANOS, t.decimal(14, 6)),
    _to_entry("time_to_millis", "timeToMillis", _MILLI_NANOS, t.LONG),
    _to_entry("time_to_micros", "timeToMicros", MICRO_NANOS, t.LONG),
)
register_internal(
    Function("cut_time", _cut, accept(t.TIME, t.TIME, t.INT), arity=(2, 2), changes=_SINCE_4_1),
    # the decimals of the time, the interval, its last field, and the decimals of the result: what Java's method takes
    Function(
        "time_add_interval",
        _add,
        accept(t.TIME, t.TIME, t.INT, t.DAY_TIME, t.BYTE, t.INT),
        arity=(5, 5),
        raises=ALWAYS_RAISES,
        java=_java("timeAddInterval"),
        changes=_SINCE_4_1,
    ),
    Function(
        "subtract_times",
        _subtract,
        accept(t.DAY_TIME, t.TIME),
        arity=(2, 2),
        java=_java("subtractTimes"),
        changes=_SINCE_4_1,
    ),
    Function(
        "timestamp_ntz_at",
        _timestamp_at,
        accept(t.TIMESTAMP_NTZ, t.DATE, t.TIME),
        arity=(2, 2),
        raises=ALWAYS_RAISES,
        java=_java("makeTimestampNTZ"),
        changes=_SINCE_4_1,
    ),
    Function(
        "timestamp_at",
        _timestamp_at,
        accept(t.timestamp("UTC"), t.DATE, t.TIME, t.STRING),
        arity=(3, 3),
        raises=ALWAYS_RAISES,
        result_of=_zoned,
        java=_java("makeTimestamp"),
        changes=_SINCE_4_1,
    ),
)
