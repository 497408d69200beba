"""The proleptic Gregorian calendar in numpy: converts days since the epoch to year, month, day and back, for any year."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.types import names as t
from kquery_spark.types.sizes import check_string_bytes
from kquery_spark.types.units import DAY_MICROS
from kquery_spark.types.vector import Int64s

_DAYS = "datetime64[D]"
_MONTHS = "datetime64[M]"
_EPOCH_WEEKDAY = 3  # January 1, 1970 was a Thursday


class OutOfRange(Unsupported):
    """A result outside the range of dates or timestamps, for which Spark raises an error or wraps around."""

    def __init__(
        self, reason: str = "dates and timestamps outside the range of their type are not supported"
    ) -> None:
        super().__init__(reason)


def add_micros(left: Any, right: Any) -> Int64s:
    """Add microseconds; raises OutOfRange if a sum does not fit into 64 bits."""
    total = np.asarray(left + right)
    if (((left ^ total) & (right ^ total)) < 0).any():
        raise OutOfRange
    return total


def subtract_micros(start: Int64s, end: Int64s, mask: Any) -> Int64s:
    """Return ``end - start`` in microseconds; raises OutOfRange on overflow in a row that ``mask`` does not exclude."""
    gap = np.asarray(end - start)
    wrapped = ((end ^ start) & (end ^ gap)) < 0
    if (wrapped if mask is None else wrapped & ~mask).any():
        raise OutOfRange
    return gap


def timestamp_micros(days: Int64s, micros: Any = 0) -> Int64s:
    """Return the timestamp in microseconds of ``micros`` microseconds after midnight of each day."""
    instants = np.asarray(days * DAY_MICROS + micros)
    if (instants // DAY_MICROS != days).any():
        raise OutOfRange
    return instants


def month_numbers(days: Int64s) -> Int64s:
    """Return the month of each day, counted from January 1970."""
    return np.asarray(days.astype(_DAYS).astype(_MONTHS).astype(np.int64))


def first_day(months: Int64s) -> Int64s:
    """Return the first day of each month (counted from January 1970) in days since the epoch."""
    return np.asarray(months.astype(_MONTHS).astype(_DAYS).astype(np.int64))


def split(days: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return year, month (1 to 12) and day of month of days since the epoch."""
    months = month_numbers(days)
    return months // 12 + 1970, months % 12 + 1, days - first_day(months) + 1


def weekday(days: Int64s) -> Int64s:
    """Return the day of the week: 0 for Monday to 6 for Sunday."""
    return np.asarray((days + _EPOCH_WEEKDAY) % 7)


def days_of_dates(year: Any, month: Any, day: Any) -> Int64s:
    """Return the days since the epoch of dates; month and day must be in range."""
    return np.asarray(first_day(np.asarray((np.asarray(year, np.int64) - 1970) * 12 + month - 1)) + day - 1)


def days_in_month(year: Any, month: Any) -> Int64s:
    """Return the number of days of each month."""
    months = np.asarray((np.asarray(year, np.int64) - 1970) * 12 + month - 1)
    return np.asarray(first_day(months + 1) - first_day(months))


def is_valid(year: Any, month: Any, day: Any) -> npt.NDArray[np.bool_]:
    """Return a mask that is True where year, month and day form a date of the calendar."""
    in_year = (month >= 1) & (month <= 12)
    length = days_in_month(year, np.where(in_year, month, 1))
    return np.asarray(in_year & (day >= 1) & (day <= length))


def add_months(days: Int64s, count: Any) -> Int64s:
    """Return the same day ``count`` months later, or the last day of a shorter month (``LocalDate.plusMonths``)."""
    months = month_numbers(days)
    day = days - first_day(months)
    target = months + count
    start = first_day(target)
    return np.asarray(start + np.minimum(day, first_day(target + 1) - start - 1))


def digits(values: Any, width: int) -> npt.NDArray[np.uint8]:
    """Return the ASCII digits of non-negative integers, zero-padded to ``width``: a row per integer, a column per digit."""
    values = np.asarray(values, np.int64)
    powers = 10 ** np.arange(width - 1, -1, -1, dtype=np.int64)
    return np.asarray(values[:, None] // powers % 10 + ord("0"), np.uint8)


def fixed_width_strings(columns: list[Any], length: int, mask: Any) -> pa.Array:
    """Build strings of equal width; NULL where ``mask``.

    columns: the parts of the strings from left to right. A part is either bytes that all rows have in common, or a
    two-dimensional array with the ASCII characters of each row.
    """
    width = sum(len(c) if isinstance(c, bytes) else c.shape[1] for c in columns)
    check_string_bytes(length * width, "strings of a batch")
    cells = np.empty((length, width), np.uint8)
    at = 0
    for column in columns:
        if isinstance(column, bytes):
            cells[:, at : at + len(column)] = np.frombuffer(column, np.uint8)
            at += len(column)
        else:
            cells[:, at : at + column.shape[1]] = column
            at += column.shape[1]
    bounds = np.arange(0, (length + 1) * width, max(width, 1), dtype=np.int32)[: length + 1]
    bitmap, nulls = None, 0
    if mask is not None:
        flags = pa.array(~np.asarray(mask))
        bitmap, nulls = flags.buffers()[1], int(np.count_nonzero(mask))
    buffers = [bitmap, pa.py_buffer(bounds), pa.py_buffer(cells)]
    return pa.Array.from_buffers(t.STRING, length, buffers, nulls)


def year_text(year: int) -> str:
    """Format a year as Spark does: four digits, with a sign if there are more digits or if the year is negative."""
    if 0 <= year <= 9999:
        return f"{year:04d}"
    return f"-{abs(year):04d}" if year < 0 else f"+{year}"


def date_strings(days: Int64s, mask: Any) -> pa.Array:
    """Format days since the epoch as ``yyyy-MM-dd``."""
    year, month, day = split(days)
    if len(days) == 0 or ((year >= 0) & (year <= 9999)).all():
        return fixed_width_strings(
            [digits(year, 4), b"-", digits(month, 2), b"-", digits(day, 2)], len(days), mask
        )
    parts = zip(year.tolist(), month.tolist(), day.tolist(), strict=True)
    strings = [f"{year_text(y)}-{m:02d}-{d:02d}" for y, m, d in parts]
    return pa.array(strings, t.STRING, mask=mask)


def timestamp_strings(local: Int64s, mask: Any) -> pa.Array:
    """Format wall-clock microseconds as ``yyyy-MM-dd HH:mm:ss[.ffffff]``, without trailing zeros of the fraction."""
    days, micros = local // DAY_MICROS, local % DAY_MICROS
    seconds, fraction = micros // 1_000_000, micros % 1_000_000
    clock = [digits(seconds // 3600, 2), b":", digits(seconds // 60 % 60, 2), b":", digits(seconds % 60, 2)]
    if not fraction.any():
        time = fixed_width_strings(clock, len(local), mask)
    else:
        time = fixed_width_strings([*clock, b".", digits(fraction, 6)], len(local), mask)
        trimmed = pc.utf8_rtrim(pc.utf8_rtrim(time, characters="0"), characters=".")
        whole = fixed_width_strings(clock, len(local), mask)
        time = pc.if_else(pa.array(fraction == 0), whole, trimmed)
    return pc.binary_join_element_wise(date_strings(days, mask), time, " ")
