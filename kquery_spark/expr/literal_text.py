"""Prints literals."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from kquery_spark.types import names as t
from kquery_spark.types.units import MICRO_NANOS

_EPOCH = dt.date(1970, 1, 1)


def format_literal(value: Any, dtype: pa.DataType) -> str:
    """Return a literal as in SQL; times beyond the range of Python's calendar as an offset from 1970."""
    if value is None:
        return "NULL"
    if dtype == t.STRING:
        return "'" + str(value).replace("'", "''") + "'"
    if dtype == t.DATE:
        return f"DATE '{_date_text(value)}'"
    if pa.types.is_timestamp(dtype):
        kind = "TIMESTAMP" if dtype.tz else "TIMESTAMP_NTZ"
        return f"{kind} '{_timestamp_text(value, dtype.tz)}'"
    if dtype == t.DAY_TIME:
        return f"INTERVAL '{value / 1e6:g}' SECOND"
    if dtype == t.YEAR_MONTH:
        return f"INTERVAL '{value}' MONTH"
    if dtype == t.TIME:
        return f"TIME '{_timestamp_text(value // MICRO_NANOS, None).partition(' ')[2]}'"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    return str(value).upper() if isinstance(value, bool) else str(value)


def _date_text(days: int) -> str:
    try:
        return (_EPOCH + dt.timedelta(days=days)).isoformat()
    except OverflowError:
        return f"1970-01-01 {days:+d} days"


def _timestamp_text(micros: int, tz: str | None) -> str:
    try:
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=micros)
        return moment.replace(tzinfo=None).isoformat(" ") + ("Z" if tz else "")
    except OverflowError:
        return f"1970-01-01 {micros:+d} us"
