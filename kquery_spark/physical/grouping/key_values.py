"""Represents the values of keys as integers, for grouping, hashing, joins, and filters by minimum and maximum."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.kernels.ordered_bytes import can_order
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector, validity


def check_key_type(dtype: pa.DataType) -> None:
    """Raise Unsupported for a type by which the engine cannot group, join or sort."""
    if t.is_nested(dtype) and not can_order(dtype):
        raise Unsupported(f"grouping, joining or sorting by {t.spark_name(dtype)} values is not supported")


def as_integers(vector: Vector) -> pa.Array | None:
    """Return the values as int64 if they are represented by integers; otherwise None.

    Besides integers, these are booleans, dates, timestamps, intervals and narrow decimals.
    """
    dtype, data = vector.dtype, vector.data
    if vector.is_narrow or dtype == t.LONG:
        return data
    if t.is_integral(dtype) or dtype == t.BOOL:
        return data.cast(t.LONG)
    if dtype == t.DATE:
        return data.view(t.INT).cast(t.LONG)
    if t.has_long_counts(dtype):
        return data.view(t.LONG)
    return None


def native_integers(vector: Vector) -> pa.Array | None:
    """Return what ``as_integers`` returns, but without widening narrow integers and dates to int64."""
    if vector.dtype == t.DATE:
        return vector.data.view(t.INT)
    return vector.data if t.is_integral(vector.dtype) else as_integers(vector)


def normalized_bits(data: pa.Array) -> pa.Array:
    """Return the bits of floats as int64, with a single NaN and a single zero. NULLs stay NULL."""
    values = data.cast(t.DOUBLE).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    values = np.where(np.isnan(values), np.nan, values)
    bits = np.ascontiguousarray(values).view(np.int64)
    valid = validity(data)
    return pa.array(bits, mask=None if valid is None else ~valid)
