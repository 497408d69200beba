"""Rebases dates and times from the hybrid calendar of old writers, which is Julian before 1582-10-15, Gregorian since then.

Spark before 3.0, Hive and ORC's Java library use the hybrid calendar; since 3.0, Spark uses the Gregorian one for all dates.
Rebasing retains the date and time of day and changes the number of days. For example, the Julian date 1500-01-01 is day
-171655. It becomes day -171664, the Gregorian date 1500-01-01. The rules are those of Spark's ``RebaseDateTime``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kquery_spark.types.units import DAY_MICROS
from kquery_spark.types.vector import Int64s

GREGORIAN_START_DAY = -141_427  # 1582-10-15
REBASE_END_MICROS = -2_208_988_800_000_000  # 1900-01-01 UTC; later times are the same in all zones

_JULIAN_EPOCH_DAYS = 719_470  # days from 0000-03-01 of the Julian calendar to 1970-01-01 of the Gregorian one
_GREGORIAN_EPOCH_DAYS = 719_468  # and from 0000-03-01 of the Gregorian calendar


@dataclass(frozen=True)
class HybridZone:
    """The rebase rules of one time zone; all numbers are microseconds.

    switches, differences: from ``switches[i]`` to the next switch, an instant moves by ``differences[i]``. Before the first
    switch, days are rebased instead. hybrid_offset, local_offset: the offset from UTC before the first switch in
    ``java.util.Calendar``, which does not know local mean time, and in ``java.time``.
    """

    name: str
    switches: tuple[int, ...] = ()
    differences: tuple[int, ...] = ()
    hybrid_offset: int = 0
    local_offset: int = 0


def gregorian_days(days: Int64s) -> Int64s:
    """Rebase days since 1970. February 29 of a year that is not a Gregorian leap year becomes March 1, as in Spark.

    Years begin on March 1 here, so that a leap day is the last day of a cycle of four years.
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
    """Rebase microseconds since 1970 to the instants with the same wall-clock times in a zone."""
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
