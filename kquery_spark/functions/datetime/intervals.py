"""Multiplication and division of intervals; building day-time intervals from fields, and extracting their fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError, PlanError
from kquery_spark.functions.call_form import FOUR_COLUMNS
from kquery_spark.functions.core.arguments import joint_mask, numbers, unscaled_digits
from kquery_spark.functions.math.overflow import as_intervals, interval_overflow
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    CallContext,
    Function,
    Kernel,
    accept,
    cast_to,
    register,
    register_internal,
)
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS, INT64_MAX, SECOND_MICROS
from kquery_spark.types.vector import Data, Int64s, Vector

_MINUTE = 60 * SECOND_MICROS
_HOUR = 60 * _MINUTE
_ARGUMENT_UNITS = (DAY_MICROS, _HOUR, _MINUTE, 1)  # the units of MAKE_DT_INTERVAL's arguments in microseconds


def interval_counts(vector: Vector, length: int) -> Int64s:
    """The microseconds or months of intervals; 0 for NULL."""
    plain = vector.array(length).view(t.LONG).fill_null(0)
    return np.asarray(plain.to_numpy(zero_copy_only=False), np.int64)


def _number(vector: Vector, length: int, missing: int) -> Any:
    """The values of a numeric argument as int64 or double; ``missing`` for NULL."""
    data = vector.array(length).cast(t.LONG if t.is_integral(vector.dtype) else t.DOUBLE)
    return np.asarray(data.fill_null(missing).to_numpy(zero_copy_only=False))


def _round_half_up(values: Any) -> Int64s:
    """Round doubles to bigint, halves away from zero; raises an error for values outside the range of bigint."""
    near = np.rint(values)
    near = np.where(np.abs(values - near) == 0.5, values + np.copysign(0.5, values), near)
    if not ((near >= -(2.0**63)) & (near < 2.0**63)).all():
        raise interval_overflow()
    return np.asarray(near, np.int64)


def _multiply(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    count, number, mask = interval_counts(args[0], n), _number(args[1], n, 0), joint_mask(args, n)
    if mask is not None:
        count, number = np.where(mask, 0, count), np.where(mask, 0, number)
    with np.errstate(all="ignore"):
        if number.dtype == np.int64:
            product = count * number
            bound = np.abs(count.astype(np.float64)) * np.abs(number.astype(np.float64))
            near = np.flatnonzero(bound > 2.0**62)  # few: these are multiplied again without a limit
            exact = [int(count[i]) * int(number[i]) for i in near]
            if any(not -INT64_MAX - 1 <= value <= INT64_MAX for value in exact):
                raise interval_overflow()
        else:
            product = _round_half_up(count * number)
    return as_intervals(pa.array(product, mask=mask), context.dtype, interval_overflow())


def _divide(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    count, number, mask = interval_counts(args[0], n), _number(args[1], n, 1), joint_mask(args, n)
    if mask is not None:
        count, number = np.where(mask, 0, count), np.where(mask, 1, number)
    if (number == 0).any():
        raise ExecutionError("INTERVAL_DIVIDED_BY_ZERO", "Division by zero.")
    with np.errstate(all="ignore"):
        if number.dtype != np.int64:
            quotient = pa.array(_round_half_up(count / number), mask=mask)
            return as_intervals(quotient, context.dtype, interval_overflow())
        least = -(2 ** (t.INTERVAL_STORAGE[context.dtype].bit_width - 1))
        if ((count == least) & (number == -1)).any():
            raise interval_overflow("WITH_SUGGESTION")
        whole = count // number
        rest = count - whole * number
        negative = (count < 0) != (number < 0)
        # Truncate toward zero first. Then round away from zero if the remainder is at least half of the divisor.
        inexact = (rest != 0) & negative
        whole = np.where(inexact, whole + 1, whole)
        left = np.abs(np.where(inexact, number - rest, rest)).view(np.uint64)
        up = (rest != 0) & (left >= np.abs(number).view(np.uint64) - left)
    quotient = pa.array(whole + np.where(up, np.where(negative, -1, 1), 0), mask=mask)
    return as_intervals(quotient, context.dtype, interval_overflow())


def _field(unit: int, modulus: int, dtype: pa.DataType) -> Callable[[Sequence[Vector], CallContext], Data]:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        count = interval_counts(args[0], n)
        within = count if not modulus else np.fmod(count, modulus)
        values = within - np.fmod(within, unit)
        return pa.array(values // unit, mask=joint_mask(args, n)).cast(dtype)

    return run


def _seconds(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    # the digits of a decimal
    return pa.array(np.fmod(interval_counts(args[0], n), _MINUTE), mask=joint_mask(args, n))


def _make(args: Sequence[Vector], context: CallContext) -> Data:
    """Build intervals of days, hours, minutes and decimal(18, 6) seconds; omitted arguments are 0."""
    n = context.num_rows
    total = np.zeros(n, np.int64)
    mask = joint_mask(args, n)
    fields = [
        (unscaled_digits(a, n) if unit == 1 else numbers(a, n), unit)
        for a, unit in zip(args, _ARGUMENT_UNITS, strict=False)
    ]
    # Spark begins with the seconds, and any sum may overflow
    for count, unit in fields[3:] + fields[:3]:
        counted = count if mask is None else np.where(mask, 0, count)
        with np.errstate(all="ignore"):
            part = counted * unit
            added = total + part
        if ((np.abs(counted) > INT64_MAX // unit) | (((total ^ added) & (part ^ added)) < 0)).any():
            raise ExecutionError(
                "INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION", "Integer overflow in make_dt_interval."
            )
        total = added
    return pa.array(total, mask=mask).view(t.DAY_TIME)


def _scaled_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not t.is_interval(types[0]) or not (t.is_integral(types[1]) or t.is_fractional(types[1])):
        raise PlanError(
            f"an interval and {t.spark_name(types[1])} are not multiplied or divided by the engine"
        )
    return types[0]


def _part(
    name: str, catalyst: str, unit: int, modulus: int, dtype: pa.DataType, fields: tuple[str, ...]
) -> Function:
    kernel, result = _field(unit, modulus, dtype), accept(dtype, t.DAY_TIME)
    return Function(name, kernel, result, catalyst=(catalyst,), interval_fields=fields)


def _scaling(name: str, run: Kernel, *catalyst: str) -> Function:
    return Function(name, run, _scaled_type, catalyst=catalyst, arity=(2, 2), raises=ALWAYS_RAISES)


register_internal(
    _scaling("multiply_interval", _multiply, "MultiplyDTInterval", "MultiplyYMInterval"),
    _scaling("divide_interval", _divide, "DivideDTInterval", "DivideYMInterval"),
    _part("interval_days", "ExtractANSIIntervalDays", DAY_MICROS, 0, t.INT, ("DAY", "D", "DAYS")),
    _part(
        "interval_hours",
        "ExtractANSIIntervalHours",
        _HOUR,
        DAY_MICROS,
        t.BYTE,
        ("HOUR", "H", "HOURS", "HR", "HRS"),
    ),
    _part(
        "interval_minutes",
        "ExtractANSIIntervalMinutes",
        _MINUTE,
        _HOUR,
        t.BYTE,
        ("MINUTE", "M", "MIN", "MINS", "MINUTES"),
    ),
    Function(
        "interval_seconds",
        _seconds,
        accept(t.decimal(8, 6), t.DAY_TIME),
        catalyst=("ExtractANSIIntervalSeconds",),
        interval_fields=("SECOND", "S", "SEC", "SECONDS", "SECS"),
    ),
)
register(
    Function(
        "make_dt_interval",
        _make,
        accept(t.DAY_TIME, t.INT, t.INT, t.INT, t.decimal(18, 6)),
        catalyst=("MakeDTInterval",),
        arity=(0, 4),
        raises=ALWAYS_RAISES,
        coerce=cast_to(t.INT, t.INT, t.INT, t.decimal(18, 6)),
        calls=FOUR_COLUMNS,
    )
)
