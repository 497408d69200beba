"""Arithmetic of dates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError
from kquery_spark.functions.call_form import THREE_COLUMNS, TWO_COLUMNS, CallForm
from kquery_spark.functions.casts.temporal import packed
from kquery_spark.functions.core.arguments import joint_mask, numbers
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.datetime.date_fields import ints
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
from kquery_spark.kernels import civil
from kquery_spark.types import names as t
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
NO_LEGACY_INTERVAL = CatalystParameters(fixed=(("legacyInterval", False),))

register_internal(
    # date - date in SQL; legacyInterval must be false
    Function(
        "subtract_dates",
        _subtract_dates,
        accept(t.DAY_TIME, t.DATE),
        catalyst=("SubtractDates",),
        parameters=NO_LEGACY_INTERVAL,
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
)
