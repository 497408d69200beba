"""Session time zones: converts instants to wall-clock time and back by the rules of java.time.

Arrow's own zone kernels know no transitions after 2037 (later summers get the winter offset), so this module reads the time
zone database itself. A zone is a sorted list of transitions and the offsets between them, so the offset of an instant is
found by binary search. For example, in Europe/Berlin the offset changes from 3600 to 7200 seconds at 2026-03-29 01:00 UTC.
"""

from __future__ import annotations

import bisect
import datetime as dt
import functools
import importlib.resources
import re
import struct
import zoneinfo
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.types.units import DAY_MICROS
from kquery_spark.types.vector import Int64s

_UTC = frozenset(
    {"UTC", "Z", "Etc/UTC", "GMT", "Etc/GMT", "UT", "GMT0", "Etc/UCT", "Zulu", "Etc/Zulu", "Universal"}
)
_OFFSET = re.compile(
    r"([+-])(?:([0-9]{1,2})|([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?|([0-9]{2})([0-9]{2})([0-9]{2})?)"
)
_PREFIXED = re.compile(r"(?:UTC|GMT|UT)([+-].*)")
_MOST = 2**63 - 1 - 2 * DAY_MICROS  # beyond this limit, adding a day and a zone's offset could overflow
_CYCLE = 146_097 * DAY_MICROS  # 400 years, after which the Gregorian calendar repeats, including weekdays


def offset_seconds(text: str) -> int | None:
    """Parse an offset as Spark does (``+h``, ``+hh:mm``, ``UTC+hhmmss``): seconds east of UTC, or None if malformed."""
    prefixed = _PREFIXED.fullmatch(text)
    # Pad hours and minutes of one digit: +1:30 becomes +01:30, and +01:3 becomes +01:03.
    body = re.sub(r"([+-])(\d):", r"\g<1>0\2:", prefixed[1] if prefixed else text, count=1)
    match = _OFFSET.fullmatch(re.sub(r"([+-])(\d\d):(\d)$", r"\1\2:0\3", body))
    if match is None:
        return None
    hours, minutes, seconds = (_matched_number(match, *groups) for groups in ((2, 3, 6), (4, 7), (5, 8)))
    if minutes > 59 or seconds > 59 or (hours, minutes, seconds) > (18, 0, 0):
        return None
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if match[1] == "-" else 1)


def _matched_number(match: re.Match[str], *groups: int) -> int:
    """Return the number in the first of the groups that matched; 0 if none did."""
    return int(next((g for g in match.group(*groups) if g), 0))


@functools.lru_cache(maxsize=256)
def fixed_offset(tz: str) -> int | None:
    """Return the microseconds east of UTC of a zone with one fixed offset, None for a region.

    Raises Unsupported if the zone is unknown.
    """
    if tz in _UTC:
        return 0
    seconds = offset_seconds(tz)
    if seconds is not None:
        return seconds * 1_000_000
    if "/" in tz and tz in zoneinfo.available_timezones():
        return None
    raise Unsupported(f"the time zone {tz} is not supported")


def _read_zone_file(tz: str) -> bytes:
    for root in zoneinfo.TZPATH:
        path = Path(root) / tz
        if path.is_file():
            return path.read_bytes()
    package = importlib.resources.files("tzdata.zoneinfo")
    return package.joinpath(*tz.split("/")).read_bytes()


def _read_tzif(data: bytes) -> tuple[list[int], list[int]]:
    """Read a TZif file (RFC 8536): transitions in seconds, and offsets; the first offset precedes all transitions."""
    header = struct.Struct(">4sc15x6l")
    _, version, isut, isstd, leap, times, types, chars = header.unpack_from(data)
    at, size = header.size, 4
    if version >= b"2":  # a second block with 64-bit transitions follows the one with 32-bit transitions
        at += times * 5 + types * 6 + chars + leap * 8 + isstd + isut
        _, _, isut, isstd, leap, times, types, chars = header.unpack_from(data, at)
        at, size = at + header.size, 8
    moments = list(struct.unpack_from(f">{times}{'q' if size == 8 else 'l'}", data, at))
    kinds = list(data[at + size * times : at + (size + 1) * times])
    table = at + (size + 1) * times
    seconds = [struct.unpack_from(">l", data, table + 6 * k)[0] for k in range(types)]
    return moments, [seconds[0], *(seconds[k] for k in kinds)]


END = 16_725_225_600
"""The beginning of 2500 in seconds. From then on the rules of the preceding 400 years repeat."""


@dataclass(frozen=True)
class ZoneTable:
    """The transitions of a zone until 2500.

    moments: transitions in seconds since the epoch. offsets: seconds east of UTC between them; there is one more offset than
    transitions, and the first one applies before the first transition.
    """

    name: str
    moments: tuple[int, ...]
    offsets: tuple[int, ...]

    def next_after(self, moment: int) -> tuple[int, int] | None:
        """Return the first transition after a moment and its new offset; None if there is none."""
        index = bisect.bisect_right(self.moments, moment)
        return (self.moments[index], self.offsets[index + 1]) if index < len(self.moments) else None

    def until(self, moment: int) -> ZoneTable:
        """Return the table without the transitions after a moment."""
        count = bisect.bisect_right(self.moments, moment)
        return ZoneTable(self.name, self.moments[:count], self.offsets[: count + 1])

    def followed_by(self, other: ZoneTable) -> ZoneTable:
        """Append the transitions of another table that are later than the last one of this table."""
        count = bisect.bisect_right(other.moments, self.moments[-1]) if self.moments else 0
        moments, offsets = other.moments[count:], other.offsets[count + 1 :]
        return ZoneTable(self.name, self.moments + moments, self.offsets + offsets)


_adopted: dict[str, ZoneTable] = {}


def adopt_tables(*tables: ZoneTable) -> None:
    """Make this process use these tables instead of its own time zone database.

    Workers adopt the tables of the driver, so that all processes agree even if their databases differ.
    """
    for table in tables:
        if _adopted.get(table.name) != table:
            _adopted[table.name] = table
            _transitions.cache_clear()


def adopted_tables_in(data: bytes) -> tuple[ZoneTable, ...]:
    """Return the adopted tables of the zones whose names occur in a serialized plan."""
    return tuple(table for name, table in _adopted.items() if name.encode() in data)


def table_of_this_machine(tz: str) -> ZoneTable:
    """Build the table of a zone from this machine's time zone database.

    The file lists transitions only up to the last change of the rules. The later ones are computed: the offset is compared
    week by week, and where it changes, bisection finds the second.
    """
    recorded_moments, recorded_offsets = _read_tzif(_read_zone_file(tz))
    moments: list[int] = []
    offsets = recorded_offsets[:1]
    for second, seconds in zip(recorded_moments, recorded_offsets[1:], strict=True):
        if seconds != offsets[-1]:
            moments.append(second)
            offsets.append(seconds)
    zone = zoneinfo.ZoneInfo(tz)

    def offset(second: int) -> int:
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(seconds=second)
        return int(zone.utcoffset(moment.astimezone(zone)).total_seconds())  # type: ignore[union-attr]

    low = max(recorded_moments[-1] if recorded_moments else 0, 0)
    current, week = offset(low), 7 * 86400
    for high in range(low + week, END + week, week):
        new = offset(high)
        if new != current:
            left, right = high - week, high
            while right - left > 1:
                middle = (left + right) // 2
                left, right = (middle, right) if offset(middle) == current else (left, middle)
            moments.append(right)
            offsets.append(new)
            current = new
    return ZoneTable(tz, tuple(moments), tuple(offsets))


@functools.lru_cache(maxsize=64)
def _transitions(tz: str) -> tuple[Int64s, Int64s]:
    """Return the transitions until 2500 and the offsets between them, both in microseconds."""
    table = _adopted.get(tz) or table_of_this_machine(tz)
    return np.array(table.moments, np.int64) * 1_000_000, np.array(table.offsets, np.int64) * 1_000_000


def offsets(instants: Int64s, tz: str) -> Int64s | np.int64:
    """Return the microseconds east of UTC at each instant, which is given in microseconds since the epoch."""
    fixed = fixed_offset(tz)
    if fixed is not None:
        return np.int64(fixed)
    moments, zone_offsets = _transitions(tz)
    late = END * 1_000_000
    if len(instants) and instants.max() >= late:
        instants = np.where(instants >= late, (instants - late) % _CYCLE + late - _CYCLE, instants)
    return np.asarray(zone_offsets[np.searchsorted(moments, instants, side="right")])


def _check_zone_range(values: Int64s) -> Int64s:
    """Return ``values`` if adding any zone's offset cannot overflow; raise Unsupported otherwise."""
    if len(values) and (values.min() < -_MOST or values.max() > _MOST):
        raise Unsupported("timestamps within two days of the limits of bigint are not supported")
    return values


def to_local(instants: Int64s, tz: str) -> Int64s:
    """Return the wall-clock microseconds of each instant."""
    if fixed_offset(tz) == 0:
        return instants
    return np.asarray(_check_zone_range(instants) + offsets(instants, tz))


def to_instants_near(local: Int64s, instants: Int64s, tz: str) -> Int64s:
    """Return the instants of wall-clock times that were computed from ``instants``, and retain the offset if it is valid.

    This is ``ZonedDateTime.ofLocal`` with a preferred offset, which truncation and adding days or months use. For example,
    truncating the second 02:30 of a night in which clocks are set back from 03:00 to 02:00 gives the second 02:00.
    """
    if fixed_offset(tz) == 0:
        return local
    offset = offsets(instants, tz)
    same_offset = np.asarray(_check_zone_range(local) - offset)
    if fixed_offset(tz) is not None:
        return same_offset
    return np.where(offsets(same_offset, tz) == offset, same_offset, to_instants(local, tz))


def to_instants(local: Int64s, tz: str) -> Int64s:
    """Return the instant of each wall-clock time, as ``ZonedDateTime.ofLocal`` does.

    If clocks are set back, a time that occurs twice means the earlier instant. If they are set forward, a skipped time moves
    on by the length of the gap: 02:30 becomes 03:30. Both follow from two candidates, one with the offset of the day before
    and one with that of the day after: the first one wins unless only the second one is consistent.
    """
    fixed = fixed_offset(tz)
    if fixed is not None:
        return np.asarray((_check_zone_range(local) if fixed else local) - fixed)
    before = offsets(_check_zone_range(local) - DAY_MICROS, tz)
    first = local - before
    at_first = offsets(first, tz)
    if np.array_equal(at_first, before):
        return np.asarray(first)
    after = offsets(local + DAY_MICROS, tz)
    second = local - after
    use_second = (at_first != before) & (offsets(second, tz) == after)
    return np.asarray(np.where(use_second, second, first))


def ints(data: Any) -> tuple[Int64s, Any]:
    """Convert a date, timestamp or integer array to int64 (0 for NULL); return it with its NULL mask, or None."""
    array = data
    if not pa.types.is_integer(data.type):
        array = data.view(pa.int32() if pa.types.is_date32(data.type) else pa.int64())
    mask = None
    if array.null_count:
        mask = np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False))
        array = array.fill_null(0)
    return array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), mask
