"""Session time zones: instants to wall-clock time and back, by java.time's rules.

Arrow's own zone kernels stop at 2037 (later summers get winter's offset), so the transitions are read here.
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
_MOST = 2**63 - 1 - 2 * DAY_MICROS
_CYCLE = 146_097 * DAY_MICROS  # the Gregorian calendar repeats after 400 years, weekdays included


def offset_seconds(text: str) -> int | None:
    """Seconds east of UTC of an offset as Spark spells it (``+h``, ``+hh:mm``, ``UTC+hhmmss``), None for anything else."""
    prefixed = _PREFIXED.fullmatch(text)
    body = re.sub(r"([+-])(\d):", r"\g<1>0\2:", prefixed[1] if prefixed else text, count=1)
    match = _OFFSET.fullmatch(re.sub(r"([+-])(\d\d):(\d)$", r"\1\2:0\3", body))
    if match is None:
        return None
    hours, minutes, seconds = (_number_in(match, *groups) for groups in ((2, 3, 6), (4, 7), (5, 8)))
    if minutes > 59 or seconds > 59 or (hours, minutes, seconds) > (18, 0, 0):
        return None
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if match[1] == "-" else 1)


def _number_in(match: re.Match[str], *groups: int) -> int:
    """The number in the one of the groups that matched; 0 if none did."""
    return int(next((g for g in match.group(*groups) if g), 0))


@functools.lru_cache(maxsize=256)
def fixed_offset(tz: str) -> int | None:
    """Microseconds east of UTC when the zone is one fixed offset, None for a region; Unsupported if unknown."""
    if tz in _UTC:
        return 0
    seconds = offset_seconds(tz)
    if seconds is not None:
        return seconds * 1_000_000
    if "/" in tz and tz in zoneinfo.available_timezones():
        return None
    raise Unsupported(f"the time zone {tz} is not supported")


def _file(tz: str) -> bytes:
    for root in zoneinfo.TZPATH:
        path = Path(root) / tz
        if path.is_file():
            return path.read_bytes()
    package = importlib.resources.files("tzdata.zoneinfo")
    return package.joinpath(*tz.split("/")).read_bytes()


def _recorded(data: bytes) -> tuple[list[int], list[int]]:
    """Transition instants (seconds) of a TZif file and the offsets from each on, the first from the beginning of time."""
    header = struct.Struct(">4sc15x6l")
    _, version, isut, isstd, leap, times, types, chars = header.unpack_from(data)
    at, size = header.size, 4
    if version >= b"2":
        at += times * 5 + types * 6 + chars + leap * 8 + isstd + isut
        _, _, isut, isstd, leap, times, types, chars = header.unpack_from(data, at)
        at, size = at + header.size, 8
    moments = list(struct.unpack_from(f">{times}{'q' if size == 8 else 'l'}", data, at))
    kinds = list(data[at + size * times : at + (size + 1) * times])
    table = at + (size + 1) * times
    seconds = [struct.unpack_from(">l", data, table + 6 * k)[0] for k in range(types)]
    return moments, [seconds[0], *(seconds[k] for k in kinds)]


END = 16_725_225_600
"""The beginning of 2500, from which on the zones' rules are those of the 400 years before."""


@dataclass(frozen=True)
class ZoneTable:
    """The changes of a zone's clocks until 2500.

    moments: in seconds since the epoch. offsets: seconds east of UTC between them, the first from the beginning of time.
    """

    name: str
    moments: tuple[int, ...]
    offsets: tuple[int, ...]

    def next_after(self, moment: int) -> tuple[int, int] | None:
        """The first change after a moment and the offset from then on."""
        index = bisect.bisect_right(self.moments, moment)
        return (self.moments[index], self.offsets[index + 1]) if index < len(self.moments) else None

    def until(self, moment: int) -> ZoneTable:
        """The changes up to a moment."""
        count = bisect.bisect_right(self.moments, moment)
        return ZoneTable(self.name, self.moments[:count], self.offsets[: count + 1])

    def followed_by(self, other: ZoneTable) -> ZoneTable:
        """These changes, and those of another table after the last of them."""
        count = bisect.bisect_right(other.moments, self.moments[-1]) if self.moments else 0
        moments, offsets = other.moments[count:], other.offsets[count + 1 :]
        return ZoneTable(self.name, self.moments + moments, self.offsets + offsets)


_adopted: dict[str, ZoneTable] = {}


def adopt(*tables: ZoneTable) -> None:
    """Have this process take zones for what the tables say from now on, and not for what its own data say."""
    for table in tables:
        if _adopted.get(table.name) != table:
            _adopted[table.name] = table
            _transitions.cache_clear()


def adopted_in(data: bytes) -> tuple[ZoneTable, ...]:
    """The tables that this process was given of zones that serialized plans name."""
    return tuple(table for name, table in _adopted.items() if name.encode() in data)


def table_of_this_machine(tz: str) -> ZoneTable:
    """A zone as this machine's time zone database has it."""
    recorded_moments, recorded_offsets = _recorded(_file(tz))
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
    known, week = offset(low), 7 * 86400
    for high in range(low + week, END + week, week):
        now = offset(high)
        if now != known:
            left, right = high - week, high
            while right - left > 1:
                middle = (left + right) // 2
                left, right = (middle, right) if offset(middle) == known else (left, middle)
            moments.append(right)
            offsets.append(now)
            known = now
    return ZoneTable(tz, tuple(moments), tuple(offsets))


@functools.lru_cache(maxsize=64)
def _transitions(tz: str) -> tuple[Int64s, Int64s]:
    """Microseconds of every transition until 2500, and the offsets between them."""
    table = _adopted.get(tz) or table_of_this_machine(tz)
    return np.array(table.moments, np.int64) * 1_000_000, np.array(table.offsets, np.int64) * 1_000_000


def offsets(instants: Int64s, tz: str) -> Int64s | np.int64:
    """Microseconds east of UTC at each instant (microseconds since the epoch)."""
    fixed = fixed_offset(tz)
    if fixed is not None:
        return np.int64(fixed)
    moments, zone_offsets = _transitions(tz)
    late = END * 1_000_000
    if len(instants) and instants.max() >= late:
        instants = np.where(instants >= late, (instants - late) % _CYCLE + late - _CYCLE, instants)
    return np.asarray(zone_offsets[np.searchsorted(moments, instants, side="right")])


def _inside(values: Int64s) -> Int64s:
    """Microseconds that stay a bigint in every zone."""
    if len(values) and (values.min() < -_MOST or values.max() > _MOST):
        raise Unsupported("a timestamp at the end of the range of bigint falls back to Spark")
    return values


def to_local(instants: Int64s, tz: str) -> Int64s:
    """Wall-clock microseconds of each instant."""
    if fixed_offset(tz) == 0:
        return instants
    return np.asarray(_inside(instants) + offsets(instants, tz))


def near(local: Int64s, instants: Int64s, tz: str) -> Int64s:
    """The instants of wall-clock times computed from ``instants``: the offset is retained where it is still valid.

    That is ``ZonedDateTime.ofLocal`` with a preferred offset, as truncation and adding days or months use it.
    """
    if fixed_offset(tz) == 0:
        return local
    offset = offsets(instants, tz)
    same_offset = np.asarray(_inside(local) - offset)
    if fixed_offset(tz) is not None:
        return same_offset
    return np.where(offsets(same_offset, tz) == offset, same_offset, to_instants(local, tz))


def to_instants(local: Int64s, tz: str) -> Int64s:
    """The instant of each wall-clock time, as ``ZonedDateTime.ofLocal`` finds it.

    Where clocks were set back it is the earlier one; a time that was skipped moves on by the length of the gap.
    """
    fixed = fixed_offset(tz)
    if fixed is not None:
        return np.asarray((_inside(local) if fixed else local) - fixed)
    before = offsets(_inside(local) - DAY_MICROS, tz)
    first = local - before
    at_first = offsets(first, tz)
    if np.array_equal(at_first, before):
        return np.asarray(first)
    after = offsets(local + DAY_MICROS, tz)
    second = local - after
    use_second = (at_first != before) & (offsets(second, tz) == after)
    return np.asarray(np.where(use_second, second, first))


def ints(data: Any) -> tuple[Int64s, Any]:
    """A date, timestamp or integer array as int64 (0 where NULL) and its NULL mask or None."""
    array = data
    if not pa.types.is_integer(data.type):
        array = data.view(pa.int32() if pa.types.is_date32(data.type) else pa.int64())
    mask = None
    if array.null_count:
        mask = np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False))
        array = array.fill_null(0)
    return array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), mask
