"""The hybrid calendar of old writers: Julian before 1582-10-15, Gregorian from then on.

Spark before 3.0, Hive and ORC's Java library count days and times in it; since 3.0, Spark takes dates to be Gregorian at
all times. To rebase a value is to give the Gregorian day, or instant, that has the same date and time of day. The rules
are those of Spark's ``RebaseDateTime``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kquery_spark.types.units import DAY_MICROS
from kquery_spark.types.vector import Int64s

GREGORIAN_START_DAY = -141_427  # 1582-10-15
REBASE_END_MICROS = -2_208_988_800_000_000  # 1900-01-01 UTC, from which on no zone differs

_JULIAN_EPOCH_DAYS = 719_470  # days from 0000-03-01 of the Julian calendar to 1970-01-01 of the Gregorian one
_GREGORIAN_EPOCH_DAYS = 719_468  # and from 0000-03-01 of the Gregorian calendar


@dataclass(frozen=True)
class HybridZone:
    """How instants of the hybrid calendar are rebased in one time zone; all numbers are microseconds.

    From ``switches[i]`` on, until the next switch, an instant moves by ``differences[i]``. Before the first switch the
    wall clock is ``hybrid_offset`` ahead of UTC for ``java.util.Calendar``, which knows no local mean time, and
    ``local_offset`` for ``java.time``.
    """

    name: str
    switches: tuple[int, ...] = ()
    differences: tuple[int, ...] = ()
    hybrid_offset: int = 0
    local_offset: int = 0


def gregorian_days(days: Int64s) -> Int64s:
    """Days since 1970 of the hybrid calendar as the Gregorian days of the same dates.

    A 29 February that the Gregorian calendar lacks becomes 1 March, as in Spark's ``RebaseDateTime``.
    """
    early = days < GREGORIAN_START_DAY
    if not early.any():
        return days
    since = days[early] + _JULIAN_EPOCH_DAYS
    cycle, day = np.divmod(since, 1461)  # four years from a 1 March on
    year = np.minimum(day // 365, 3)
    day_of_year = day - 365 * year
    years = 4 * cycle + year
    done = 365 * years + years // 4 - years // 100 + years // 400 + day_of_year - _GREGORIAN_EPOCH_DAYS
    result = days.copy()
    result[early] = done
    return result


def gregorian_micros(micros: Int64s, zone: HybridZone) -> Int64s:
    """Microseconds since 1970 of the hybrid calendar as the instants of the same wall-clock times in a zone."""
    early = micros < REBASE_END_MICROS
    if not early.any():
        return micros
    old = micros[early]
    switches = np.array(zone.switches, np.int64)
    switch_index = np.searchsorted(switches, old, side="right") - 1
    by_date = switch_index < 0
    differences = np.array([*zone.differences, 0], np.int64)
    rebased = old + differences[switch_index]
    if by_date.any():
        days, of_day = np.divmod(old[by_date] + zone.hybrid_offset, DAY_MICROS)
        rebased[by_date] = gregorian_days(days) * DAY_MICROS + of_day - zone.local_offset
    result = micros.copy()
    result[early] = rebased
    return result
