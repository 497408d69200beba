"""Computes the frame of each row, as a range of row numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Frame, FrameUnit, Literal, SortKey
from kquery_spark.expr.constants import literal_vector
from kquery_spark.expr.windows import check_months, check_range
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.kernels import civil
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.grouping.key_values import as_integers
from kquery_spark.physical.windows.segments import Segments
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS
from kquery_spark.types.vector import Int64s, Vector, validity

_MONTH_DAYS = 31
_MAX_DAYS = 50_000_000  # the largest distance from 1970; twice this distance is still a valid timestamp
# The bits of a value without the sign bit, 63 for other types. A key plus the offset of a frame has to fit into them.
_VALUE_BITS = {t.BYTE: 7, t.SHORT: 15, t.INT: 31, t.LONG: 63, t.DATE: 31}


def frame_rows(
    frame: Frame, segments: Segments, order: list[tuple[SortKey, Vector]]
) -> tuple[Int64s, Int64s]:
    """Return the first row and the end (exclusive) of each row's frame. They are equal for an empty frame."""
    if frame.unit is FrameUnit.ROWS:
        low = segments.start if frame.lower is None else _row_bound(segments, frame.lower, 0)
        high = segments.end if frame.upper is None else _row_bound(segments, frame.upper, 1)
    else:
        low, high = segments.start, segments.end
        if frame.lower is not None:
            low = _value_bound(frame.lower, frame.months, segments, order, upper=False)
        if frame.upper is not None:
            high = _value_bound(frame.upper, frame.months, segments, order, upper=True)
    return low, np.maximum(low, high)


def _row_bound(segments: Segments, offset: Literal, end_shift: int) -> Int64s:
    """Return a bound of a ROWS frame: each row number plus the offset, but inside of the partition.

    end_shift: 0 for the first row of the frame, 1 for its end, which is exclusive.
    """
    # Larger offsets also end outside of the partition, and adding them could overflow.
    limit = segments.num_rows + 1
    by = max(-limit, min(limit, int(offset.value))) + end_shift
    return np.clip(segments.rows + by, segments.start, segments.end)


def _value_bound(
    offset: Literal, months: bool, segments: Segments, order: list[tuple[SortKey, Vector]], *, upper: bool
) -> Int64s:
    """Return a bound of a RANGE frame: the position of the row's key plus the offset among the keys of the partition.

    NULL keys are at one end of the partition, and their frames are all NULLs, so they are excluded from the search.
    """
    if offset.value == 0:
        return segments.peer_end if upper else segments.peer_start
    key, vector = order[0]
    valid = validity(vector.data)
    if months:
        ordered, target = _keys_and_months(
            vector, int(offset.value if key.ascending else -offset.value), valid
        )
    else:
        ordered, target = _keys_and_targets(vector, offset, key.ascending, valid)
    if not key.ascending:
        ordered, target = ~ordered, ~target
    # A descending order was negated above, so the search is always in ascending order, within the keys that are not NULL.
    low, high = segments.start, segments.end
    if valid is not None:
        nulls = np.bincount(segments.ids[~valid], minlength=segments.count)[segments.ids]
        low, high = (low + nulls, high) if key.nulls_first else (low, high - nulls)
    bounds = _search(ordered, target, low, high, after_equal=upper)
    if valid is None:
        return bounds
    return np.where(valid, bounds, segments.peer_end if upper else segments.peer_start)


def _keys_and_targets(
    vector: Vector, offset: Literal, ascending: bool, valid: np.ndarray | None
) -> tuple[Int64s, Int64s]:
    """Return the keys, and the keys plus the offset, both as int64 in the order of the values."""
    dtype = vector.dtype
    if t.is_fractional(dtype):
        return _float_keys_and_targets(vector, offset.value if ascending else -offset.value)
    check_range(offset, dtype)
    integers = as_integers(vector)
    if integers is None or dtype == t.BOOL:
        raise Unsupported(f"a RANGE frame with an offset over {t.spark_name(dtype)} is not supported")
    by = _whole_offset(offset, dtype)
    values = np.asarray(dk.as_int64(integers))
    if not ascending:
        by = -by
    bits = _VALUE_BITS.get(dtype, 63)
    low, high = -(2**bits), 2**bits - 1
    present = values if valid is None else values[valid]
    if len(present) and not (low <= int(present.min()) + by and int(present.max()) + by <= high):
        # Spark wraps around, raises an error, or never computes the sum, depending on the mode and on the following rows.
        raise Unsupported(f"a RANGE frame past the end of {t.spark_name(dtype)} is not supported")
    return values, values + np.int64(by)


def _keys_and_months(vector: Vector, months: int, valid: np.ndarray | None) -> tuple[Int64s, Int64s]:
    """Return dates or timestamps, and the same values moved by a number of months, both as int64."""
    check_months(vector.dtype)
    integers = as_integers(vector)
    assert integers is not None  # times have them
    values = np.asarray(dk.as_int64(integers))
    if valid is not None:
        values = np.where(valid, values, 0)
    unit = 1 if vector.dtype == t.DATE else DAY_MICROS
    days = values // unit
    if len(days) and max(abs(int(days.min())), abs(int(days.max())), abs(months) * _MONTH_DAYS) > _MAX_DAYS:
        raise Unsupported(f"a RANGE frame past the end of {t.spark_name(vector.dtype)} is not supported")
    return values, civil.add_months(days, months) * unit + values % unit


def _float_keys_and_targets(vector: Vector, by: float) -> tuple[Int64s, Int64s]:
    kind = np.float32 if vector.dtype == t.FLOAT else np.float64
    values = vector.data.fill_null(0.0).to_numpy(zero_copy_only=False)
    step = kind(by)
    with np.errstate(all="ignore"):
        moved = values + step
    return reduce.float_order(vector.data), reduce.float_order(pa.array(moved))


def _whole_offset(offset: Literal, dtype: pa.DataType) -> int:
    if t.is_decimal(dtype):
        if not t.is_decimal(offset.dtype) or offset.dtype.scale != dtype.scale:
            raise Unsupported("the offset of a RANGE frame over decimals must have their scale")
        vector = literal_vector(offset)
        if not vector.is_narrow:
            raise Unsupported("a RANGE frame over decimals of this size is not supported")
        return int(vector.data.as_py())
    return int(offset.value)


def _search(ordered: Int64s, target: Int64s, low: Int64s, high: Int64s, after_equal: bool) -> Int64s:
    """Return, for each row, the first position in [low, high) whose key is not less than the row's target.

    after_equal: the first position whose key is greater. It is a binary search for all rows at once: each round halves the
    ranges of all rows whose range is not empty yet.
    """
    low, high = low.copy(), high.copy()
    last = max(len(ordered) - 1, 0)
    while True:
        is_open = low < high
        if not is_open.any():
            return low
        middle = (low + high) >> 1
        keys = ordered[np.minimum(middle, last)]
        right = is_open & ((keys <= target) if after_equal else (keys < target))
        low = np.where(right, middle + 1, low)
        high = np.where(is_open & ~right, middle, high)
