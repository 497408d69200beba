"""Spark's precision and scale rules for decimal arithmetic (``DecimalPrecision`` in Spark)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from kquery_spark.types import names as t

MAX_PRECISION: Final = 38
MIN_ADJUSTED_SCALE: Final = 6
NARROW_PRECISION: Final = 18  # the unscaled value always fits int64

_INTEGRAL_DIGITS: Final = {t.BYTE: 3, t.SHORT: 5, t.INT: 10, t.LONG: 20}


def bounded(precision: int, scale: int) -> pa.DataType:
    """Cap both at 38, as ``DecimalType.bounded`` does."""
    return pa.decimal128(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def adjusted(precision: int, scale: int) -> pa.DataType:
    """Give up fraction digits before integer digits, keeping at least 6, as ``adjustPrecisionScale`` does."""
    if precision <= MAX_PRECISION:
        return pa.decimal128(precision, scale)
    integer_digits = precision - scale
    return pa.decimal128(MAX_PRECISION, max(MAX_PRECISION - integer_digits, min(scale, MIN_ADJUSTED_SCALE)))


def for_integral(dtype: pa.DataType) -> pa.DataType:
    """The decimal that holds every value of an integer type (``int`` -> ``decimal(10,0)``)."""
    return pa.decimal128(_INTEGRAL_DIGITS[dtype], 0)


def for_number(dtype: pa.DataType) -> pa.DataType:
    """The decimal that Spark casts a number to where a decimal is needed; another type as it is."""
    if dtype in _INTEGRAL_DIGITS:
        return for_integral(dtype)
    return {pa.float32(): bounded(14, 7), pa.float64(): bounded(30, 15)}.get(dtype, dtype)


def wider(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal both convert to without loss; past 38 digits fraction digits go first, as in Spark."""
    scale = max(left.scale, right.scale)
    integer_digits = max(left.precision - left.scale, right.precision - right.scale)
    lost = max(0, integer_digits + scale - MAX_PRECISION)
    return bounded(integer_digits + scale, max(0, scale - lost))


def is_narrow(dtype: pa.DataType) -> bool:
    """Return whether every value of the decimal type fits an int64 unscaled."""
    return bool(dtype.precision <= NARROW_PRECISION)
