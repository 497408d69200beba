"""Casts of dates and timestamps: between each other, to and from strings, and to and from numbers."""

from __future__ import annotations

import re
import zoneinfo
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.functions.casts.numeric import cast_overflow
from kquery_spark.functions.casts.strings import WHITESPACE, parse
from kquery_spark.functions.casts.table import cast_rule
from kquery_spark.functions.registry import CallContext, EvalMode
from kquery_spark.kernels import civil, zones
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS, INT64_MAX, SECOND_MICROS
from kquery_spark.types.vector import Data, Int64s, Vector

_MAX_DAYS = 106_751_991  # the number of whole days in 2^63 microseconds


def packed(values: Any, dtype: pa.DataType, mask: Any) -> pa.Array:
    """Build a date or timestamp array from integers."""
    values = np.asarray(values)
    if dtype == t.DATE:
        days = values.astype(np.int32)
        wrapped = days != values
        if (wrapped if mask is None else wrapped & ~mask).any():
            raise civil.OutOfRange
        return pa.array(days, mask=mask).view(dtype)
    return pa.array(values.astype(np.int64, copy=False), mask=mask).view(dtype)


# --- text to date and timestamp -------------------------------------------------------------------

_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)


def parse_date(value: str) -> int | None:
    """Parse one string like Spark's ``stringToDate`` to days since the epoch; None if it is malformed."""
    text = value.strip(WHITESPACE)
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year = int(match[2]) * (-1 if match[1] == "-" else 1)
    days = day_number(year, int(match[3] or 1), int(match[4] or 1))
    return days if days is not None and -(2**31) <= days < 2**31 else None


def day_number(year: int, month: int, day: int) -> int | None:
    """Days since the epoch; None for an invalid date."""
    fields = np.array([year]), np.array([month]), np.array([day])
    return int(civil.days_of_dates(*fields)[0]) if civil.is_valid(*fields)[0] else None


def _cells(array: pa.Array, width: int) -> tuple[Any, Any]:
    """The bytes of strings that all have ``width`` bytes as a matrix, and the NULL mask; NULL rows are zeros."""
    mask = None
    if array.null_count:
        mask = np.asarray(array.is_null().to_numpy(zero_copy_only=False))
        array = array.fill_null("0" * width)
    bounds = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)
    raw = np.frombuffer(array.buffers()[2], np.uint8, int(bounds[-1]))[int(bounds[0]) :]
    return raw.reshape(len(array), width).astype(np.int64) - ord("0"), mask


def _number(cells: Any, start: int, width: int) -> Int64s:
    return np.asarray(cells[:, start : start + width] @ (10 ** np.arange(width - 1, -1, -1)))


_REGULAR_DATE = r"\A[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])\z"


def _regular_dates(array: pa.Array) -> pa.Array:
    cells, mask = _cells(array, 10)
    year, month, day = _number(cells, 0, 4), _number(cells, 5, 2), _number(cells, 8, 2)
    if mask is not None:
        month, day = np.where(mask, 1, month), np.where(mask, 1, day)
    return packed(civil.days_of_dates(year, month, day), t.DATE, mask)


@cast_rule("string", "date")
def _string_date(vector: Vector, context: CallContext) -> Data:
    return parse(vector, context, _REGULAR_DATE, _regular_dates, parse_date)


_STAMP = re.compile(
    r"([+-]?)([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})"
    r"(?:\.([0-9]*))?(?P<zone>[^0-9.].*)?)?)?)?)?)?",
    re.DOTALL,
)
_JUST_TIME = re.compile(r"T?[0-9]{1,2}:[0-9:.]*.*|T[0-9].*", re.DOTALL)
_REGION = re.compile(r"[A-Za-z]+/[A-Za-z_/+\-0-9]+")
_SHORT_ZONES = frozenset(
    [
        "ACT",
        "AET",
        "AGT",
        "ART",
        "AST",
        "BET",
        "BST",
        "CAT",
        "CNT",
        "CST",
        "CTT",
        "EAT",
        "ECT",
        "EST",
        "HST",
        "IET",
        "IST",
        "JST",
        "MIT",
        "MST",
        "NET",
        "NST",
        "PLT",
        "PNT",
        "PRT",
        "PST",
        "SST",
        "VST",
    ]
)


def zone_offset(text: str) -> int | str | None:
    """Parse the zone at the end of a timestamp: seconds east of UTC, the name of a region, or None if it is unknown."""
    text = text.strip(WHITESPACE)
    if text in ("Z", "UTC", "GMT", "UT"):
        return 0
    offset = zones.offset_seconds(text)
    if offset is not None:
        return offset
    if _REGION.fullmatch(text):
        return text if text in zoneinfo.available_timezones() else None
    if text in _SHORT_ZONES or text in zoneinfo.available_timezones():
        raise Unsupported(f"the time zone {text} is not supported")
    return None


def parse_timestamp(value: str, tz: str | None) -> int | None:
    """Parse one string like Spark's ``stringToTimestamp`` to microseconds; None if it is malformed.

    Without ``tz``, the result is the wall-clock time, and a zone in the string is ignored.
    """
    text = value.strip(WHITESPACE)
    match = _STAMP.fullmatch(text)
    if match is None:
        if _JUST_TIME.fullmatch(text) and tz is not None:
            raise Unsupported("a time without a date as a timestamp depends on the current day")
        return None
    local = _wall_clock(match)
    if local is None:
        return None
    zone: int | str | None = None
    if match["zone"] is not None:
        zone = zone_offset(match["zone"])
        if zone is None:
            return None
    if tz is None:
        return _bigint(local)
    return _instant(local, _session_zone(tz) if zone is None else zone)


def _wall_clock(stamp: re.Match[str]) -> int | None:
    """The wall-clock microseconds of a match of ``_STAMP``; None for an invalid time."""
    time = _time_of_day(stamp)
    if time is None:
        return None
    year = int(stamp[2]) * (-1 if stamp[1] == "-" else 1)
    days = day_number(year, int(stamp[3] or 1), int(stamp[4] or 1))
    return None if days is None else days * DAY_MICROS + time


def _time_of_day(stamp: re.Match[str]) -> int | None:
    hour, minute, second = int(stamp[5] or 0), int(stamp[6] or 0), int(stamp[7] or 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((stamp[8] or "")[:6].ljust(6, "0"))
    return (hour * 3600 + minute * 60 + second) * 1_000_000 + fraction


def _session_zone(tz: str) -> int | str:
    """Seconds east of UTC for a zone with a fixed offset, otherwise its name."""
    offset = zones.fixed_offset(tz)
    return tz if offset is None else offset // 1_000_000


def _instant(local: int, zone: int | str) -> int | None:
    if isinstance(zone, int):
        return _bigint(local - zone * 1_000_000)
    if abs(local) > INT64_MAX - 2 * DAY_MICROS:
        raise Unsupported("a timestamp at the end of the range of bigint in a region's time is not supported")
    return int(zones.to_instants(np.array([local], np.int64), zone)[0])


def _bigint(value: int) -> int | None:
    return value if -INT64_MAX - 1 <= value <= INT64_MAX else None


_REGULAR_STAMP = (
    r"\A[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])[ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\z"
)


def _regular_stamps(array: pa.Array) -> tuple[Int64s, Any]:
    cells, mask = _cells(array, 19)
    year, month, day = _number(cells, 0, 4), _number(cells, 5, 2), _number(cells, 8, 2)
    if mask is not None:
        month, day = np.where(mask, 1, month), np.where(mask, 1, day)
    seconds = _number(cells, 11, 2) * 3600 + _number(cells, 14, 2) * 60 + _number(cells, 17, 2)
    return civil.days_of_dates(year, month, day) * DAY_MICROS + seconds * 1_000_000, mask


@cast_rule("string", "timestamp")
def _string_timestamp(vector: Vector, context: CallContext) -> Data:
    def fast(array: pa.Array) -> pa.Array:
        local, mask = _regular_stamps(array)
        return packed(zones.to_instants(local, context.tz), context.dtype, mask)

    return parse(vector, context, _REGULAR_STAMP, fast, lambda s: parse_timestamp(s, context.tz))


@cast_rule("string", "timestamp_ntz")
def _string_ntz(vector: Vector, context: CallContext) -> Data:
    def fast(array: pa.Array) -> pa.Array:
        local, mask = _regular_stamps(array)
        return packed(local, context.dtype, mask)

    return parse(vector, context, _REGULAR_STAMP, fast, lambda s: parse_timestamp(s, None))


# --- to text --------------------------------------------------------------------------------------


@cast_rule("date", "string")
def _date_string(vector: Vector, context: CallContext) -> Data:
    days, mask = zones.ints(vector.data)
    return civil.date_strings(days, mask)


@cast_rule("timestamp", "string")
def _timestamp_string(vector: Vector, context: CallContext) -> Data:
    instants, mask = zones.ints(vector.data)
    return civil.timestamp_strings(zones.to_local(instants, context.tz), mask)


@cast_rule("timestamp_ntz", "string")
def _ntz_string(vector: Vector, context: CallContext) -> Data:
    local, mask = zones.ints(vector.data)
    return civil.timestamp_strings(local, mask)


# --- among themselves -----------------------------------------------------------------------------


def _midnights(vector: Vector) -> tuple[Int64s, Any]:
    """The midnights of dates in microseconds; after the year 294247 Spark raises an error in every mode."""
    days, mask = zones.ints(vector.data)
    if mask is not None:
        days = np.where(mask, 0, days)
    if len(days) and (days.min() < -_MAX_DAYS or days.max() > _MAX_DAYS):
        raise ExecutionError("ARITHMETIC_OVERFLOW", "long overflow")
    return days * DAY_MICROS, mask


@cast_rule("date", "timestamp")
def _date_timestamp(vector: Vector, context: CallContext) -> Data:
    local, mask = _midnights(vector)
    return packed(zones.to_instants(local, context.tz), context.dtype, mask)


@cast_rule("date", "timestamp_ntz")
def _date_ntz(vector: Vector, context: CallContext) -> Data:
    local, mask = _midnights(vector)
    return packed(local, context.dtype, mask)


@cast_rule("timestamp", "date")
def _timestamp_date(vector: Vector, context: CallContext) -> Data:
    instants, mask = zones.ints(vector.data)
    return packed(zones.to_local(instants, context.tz) // DAY_MICROS, t.DATE, mask)


@cast_rule("timestamp_ntz", "date")
def _ntz_date(vector: Vector, context: CallContext) -> Data:
    local, mask = zones.ints(vector.data)
    return packed(local // DAY_MICROS, t.DATE, mask)


@cast_rule("timestamp", "timestamp_ntz")
def _timestamp_ntz(vector: Vector, context: CallContext) -> Data:
    instants, mask = zones.ints(vector.data)
    return packed(zones.to_local(instants, context.tz), context.dtype, mask)


@cast_rule("timestamp_ntz", "timestamp")
def _ntz_timestamp(vector: Vector, context: CallContext) -> Data:
    local, mask = zones.ints(vector.data)
    return packed(zones.to_instants(local, context.tz), context.dtype, mask)


@cast_rule("timestamp", "timestamp")
def _timestamp_timestamp(vector: Vector, context: CallContext) -> Data:
    return vector.data.view(context.dtype)  # the same instants, shown in another zone


# --- numbers --------------------------------------------------------------------------------------


@cast_rule("timestamp", "integral")
def _timestamp_int(vector: Vector, context: CallContext) -> Data:
    instants, mask = zones.ints(vector.data)
    return whole_seconds(instants // SECOND_MICROS, mask, vector.dtype, context)


def whole_seconds(
    seconds: Int64s, mask: npt.NDArray[np.bool_] | None, source: pa.DataType, context: CallContext
) -> pa.Array:
    """Convert seconds to the context's integer type; too large values are an error in ANSI mode, otherwise NULL.

    source: the type that is cast.
    """
    bits = context.dtype.bit_width
    if bits < 64:
        outside = (seconds < -(2 ** (bits - 1))) | (seconds >= 2 ** (bits - 1))
        if outside.any():
            if context.mode is EvalMode.ANSI:
                raise cast_overflow(source, context.dtype)
            mask = outside if mask is None else mask | outside
    return pa.array(seconds.astype(f"int{bits}"), context.dtype, mask=mask)


@cast_rule("timestamp", "fractional")
def _timestamp_float(vector: Vector, context: CallContext) -> Data:
    micros = vector.data.view(t.LONG)
    return pc.divide(micros.cast(t.DOUBLE, safe=False), pa.scalar(1e6)).cast(context.dtype, safe=False)


@cast_rule("integral", "timestamp")
def _int_timestamp(vector: Vector, context: CallContext) -> Data:
    seconds, mask = zones.ints(vector.data)
    limit = INT64_MAX // 1_000_000
    scaled = np.clip(seconds, -limit, limit) * 1_000_000
    scaled = np.where(seconds > limit, INT64_MAX, np.where(seconds < -limit, -(2**63), scaled))
    return packed(scaled, context.dtype, mask)
