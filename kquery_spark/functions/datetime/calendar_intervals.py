"""Adds calendar intervals, which consist of months, days and microseconds, to timestamps.

The engine has no type for such an interval: the three counts are arguments of the addition. An overflow falls back to Spark.
The rules are those of Spark's ``IntervalUtils.makeInterval`` and ``DateTimeUtils.timestampAddInterval``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.functions.casts.temporal import packed
from kquery_spark.functions.core.arguments import joint_mask, numbers, unscaled_digits
from kquery_spark.functions.datetime.date_fields import ints, is_stamp
from kquery_spark.functions.registry import (
    CallContext,
    Function,
    Kernel,
    accept,
    first_argument_type,
    register_internal,
)
from kquery_spark.kernels import civil, zones
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS, INT32_MAX, SECOND_MICROS
from kquery_spark.types.vector import Data, Int64s, Vector

ADDITION = "timestamp_add_calendar_interval"
MONTHS, DAYS, MICROS = "calendar_interval_months", "calendar_interval_days", "calendar_interval_micros"
_MONTHS_A_YEAR, _DAYS_A_WEEK = 12, 7
_MINUTE = 60 * SECOND_MICROS
_HOUR = 60 * _MINUTE


def _count_kernel(unit: int) -> Kernel:
    """Build the kernel that computes ``a * unit + b`` as a 32-bit integer."""

    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        large, small = (numbers(a, n) for a in args)
        total = large * unit + small
        if (np.maximum(np.abs(large * unit), np.abs(total)) > INT32_MAX).any():
            raise civil.OutOfRange
        return pa.array(total, mask=joint_mask(args, n)).cast(t.INT)

    return run


def _micros(args: Sequence[Vector], context: CallContext) -> Data:
    """Return the microseconds of hours, minutes and seconds with six decimals."""
    n = context.num_rows
    hours, minutes = (numbers(a, n) for a in args[:2])
    seconds = unscaled_digits(args[2], n)
    total = civil.add_micros(civil.add_micros(seconds, hours * _HOUR), minutes * _MINUTE)
    return pa.array(total, mask=joint_mask(args, n))


def _add(args: Sequence[Vector], context: CallContext) -> Data:
    """Add the months and then the days to the wall-clock time, and the microseconds to the resulting instant."""
    n = context.num_rows
    moved, _ = ints(args[0], n)
    months, days, micros = (numbers(a, n) for a in args[1:])
    zone = context.tz if args[0].dtype.tz is not None else "UTC"
    if months.any():
        wall = zones.to_local(moved, zone)
        moved = _same_time_on(civil.add_months(wall // DAY_MICROS, months), wall, moved, zone)
    if days.any():
        wall = zones.to_local(moved, zone)
        moved = _same_time_on(wall // DAY_MICROS + days, wall, moved, zone)
    return packed(civil.add_micros(moved, micros), context.dtype, joint_mask(args, n))


def _same_time_on(days: Int64s, wall: Int64s, instants: Int64s, zone: str) -> Int64s:
    """The instants on other days with the same time of day."""
    return zones.to_instants_near(civil.timestamp_micros(days, wall % DAY_MICROS), instants, zone)


register_internal(
    Function(MONTHS, _count_kernel(_MONTHS_A_YEAR), accept(t.INT, t.INT), arity=(2, 2)),
    Function(DAYS, _count_kernel(_DAYS_A_WEEK), accept(t.INT, t.INT), arity=(2, 2)),
    Function(MICROS, _micros, accept(t.LONG, t.INT, t.INT, t.decimal(18, 6)), arity=(3, 3)),
    # tz of the Call is timeZoneId
    Function(ADDITION, _add, accept(first_argument_type, is_stamp, t.INT, t.INT, t.LONG), arity=(4, 4)),
)
