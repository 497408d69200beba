"""WIDTH_BUCKET and GETBIT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError, PlanError
from kquery_spark.functions.call_form import FOUR_COLUMNS, TWO_COLUMNS
from kquery_spark.functions.core.arguments import doubles, joint_mask, numbers
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    CallContext,
    Function,
    Nullability,
    accept,
    cast_to,
    register,
)
from kquery_spark.types import names as t
from kquery_spark.types.units import INT64_MAX
from kquery_spark.types.vector import Data, Vector


def _java_longs(values: Any) -> Any:
    """Doubles as Java casts them to long: NaN as 0, what is outside of the range as its end."""
    inside = np.where(values < 2.0**63, np.nan_to_num(values, nan=0.0), 0.0).astype(np.int64)
    return np.where(values >= 2.0**63, INT64_MAX, inside)


def _width_bucket(args: Sequence[Vector], context: CallContext) -> Data:
    """Return the bucket of a value among buckets of equal width between two bounds; NULL for invalid bounds or counts."""
    n = context.num_rows
    value, start, end = (doubles(a, n) for a in args[:3])
    count = numbers(args[3], n)
    mask = joint_mask(args, n)
    bad = (
        (count <= 0)
        | (count == INT64_MAX)
        | np.isnan(value)
        | (start == end)
        | ~np.isfinite(start)
        | ~np.isfinite(end)
    )
    if mask is not None:
        bad |= mask
    up = start < end
    with np.errstate(all="ignore"):
        before = np.where(up, value < start, value > start)
        behind = np.where(up, value >= end, value <= end)
        away = np.where(up, value - start, start - value)
        inside = count.astype(np.float64) * away / np.where(up, end - start, start - end)
        bucket = _java_longs(np.where(before | behind | bad, 0.0, inside)) + np.int64(1)
    bucket = np.where(before, 0, np.where(behind, count + np.int64(1), bucket))
    return pa.array(np.where(bad, 0, bucket), mask=bad)


def _get_bit(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    value, position, mask = numbers(args[0], n), numbers(args[1], n), joint_mask(args, n)
    width = args[0].dtype.bit_width
    wrong = (position < 0) | (position >= width)
    if (wrong if mask is None else wrong & ~mask).any():
        raise ExecutionError(
            "INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE", f"The position of a bit is from 0 to {width - 1}."
        )
    return pa.array(((value >> np.where(wrong, 0, position)) & 1).astype(np.int8), mask=mask)


def _bit_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not all(t.is_integral(dtype) for dtype in types):
        raise PlanError("getbit needs a whole number")
    return t.BYTE


register(
    Function(
        "width_bucket",
        _width_bucket,
        accept(t.LONG, t.DOUBLE, t.DOUBLE, t.DOUBLE, t.LONG),
        catalyst=("WidthBucket",),
        arity=(4, 4),
        nullable=Nullability.OTHER_REASONS,
        evaluates=(0, 1, 2, 3),
        coerce=cast_to(t.DOUBLE, t.DOUBLE, t.DOUBLE, t.LONG),
        calls=FOUR_COLUMNS,
    ),
    Function(
        "getbit",
        _get_bit,
        _bit_type,
        catalyst=("BitwiseGet",),
        arity=(2, 2),
        raises=ALWAYS_RAISES,
        aliases=("bit_get",),
        coerce=lambda types: [types[0], t.INT],
        calls=TWO_COLUMNS,
    ),
)
