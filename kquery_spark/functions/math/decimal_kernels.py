"""Exact decimal arithmetic by Spark's rules, in int64 where the values fit and in decimal256 where they do not.

Arrow grows precision past 38 and truncates quotients; Spark caps the precision and rounds HALF_UP. So every
operation here gets its result type and computes: exact integer result, then rounding, then the range check.
"""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError
from kquery_spark.functions.registry import CallContext, EvalMode
from kquery_spark.kernels import wide_decimals as wide
from kquery_spark.types.units import INT64_MAX
from kquery_spark.types.vector import Data, Int64s, Vector, narrow, slots, widen

_EXACT = decimal.Context(prec=200)


def magnitude(data: Data) -> int:
    """Largest absolute value of an int64 array or scalar (0 when there is none)."""
    if isinstance(data, pa.Scalar):
        return abs(data.as_py()) if data.is_valid else 0
    if len(data) == data.null_count:
        return 0
    ends = pc.min_max(data)
    return int(max(abs(ends["min"].as_py()), abs(ends["max"].as_py())))


def as_int64(data: Data) -> Int64s | np.int64:
    """An int64 array or scalar for numpy, NULL slots holding whatever they hold (0 for a scalar)."""
    if isinstance(data, pa.Scalar):
        return np.int64(data.as_py() if data.is_valid else 0)
    return slots(data)


def either_null(left: Data, right: Data, length: int) -> pa.Array | None:
    """Mask of rows where an operand is NULL, or None when there are none."""
    mask = None
    for side in (left, right):
        if isinstance(side, pa.Scalar):
            if not side.is_valid:
                return pa.array(np.ones(length, np.bool_))
        elif side.null_count:
            nulls = pc.is_null(side)
            mask = nulls if mask is None else pc.or_(mask, nulls)
    return mask


def with_nulls(values: Int64s, mask: pa.Array | None) -> pa.Array:
    """An int64 array that is NULL where ``mask`` is true."""
    if mask is None:
        return pa.array(values)
    return pa.array(values, mask=mask.to_numpy(zero_copy_only=False))


def div_half_up(values: Int64s, divisor: Int64s | int | np.int64) -> Int64s:
    """Integer quotient rounded half away from zero; ``values`` must leave room for the rounding."""
    quotient = np.abs(values) // np.abs(divisor)
    rest = np.abs(values) - quotient * np.abs(divisor)
    quotient += rest >= np.abs(divisor) - rest
    return np.asarray(np.where((values < 0) != (np.asarray(divisor) < 0), -quotient, quotient), np.int64)


def rounded_quotients(values: Int64s, divisors: Int64s) -> Int64s:
    """Return integer quotients, rounded half away from zero, of any values: ``div_half_up`` is faster, but needs room.

    The divisors are positive. ``np.divmod`` rounds down, so -7 / 2 is -4 with a remainder of 1. If the remainder is half of
    the divisor, the quotient is increased for positive values only: -3.5 becomes -4, and 3.5 becomes 4.
    """
    quotients, remainders = np.divmod(values, divisors)
    complements = divisors - remainders
    is_half = remainders == complements
    rounded: Int64s = quotients + ((remainders > complements) | (is_half & (values >= 0)))
    return rounded


def add(left: Vector, right: Vector, context: CallContext, sign: int = 1) -> Data:
    """``left + sign * right`` with the result type of the context."""
    scale = max(left.dtype.scale, right.dtype.scale)
    if left.is_narrow and right.is_narrow:
        up_l, up_r = 10 ** (scale - left.dtype.scale), 10 ** (scale - right.dtype.scale)
        # Even if all values are 0 or NULL, the power of ten itself must fit int64, hence max(..., 1).
        if max(magnitude(left.data), 1) * up_l + max(magnitude(right.data), 1) * up_r <= INT64_MAX:
            a, b = scaled(left.data, up_l), scaled(right.data, up_r)
            exact = (pc.add if sign > 0 else pc.subtract)(a, b)
            return _narrow_result(exact, scale, context)
    return round_to_decimal128(wide.add(left, right, sign, _length(left, right, context)), context)


def _length(left: Vector, right: Vector, context: CallContext) -> int:
    return 1 if left.is_scalar and right.is_scalar else context.num_rows


def scaled(data: Data, factor: int) -> Data:
    """Multiply integers by a power of ten; the products must fit 64 bits."""
    return data if factor == 1 else pc.multiply(data, pa.scalar(factor, pa.int64()))


def multiply(left: Vector, right: Vector, context: CallContext) -> Data:
    """``left * right`` with the result type of the context."""
    if left.is_narrow and right.is_narrow:
        bound = magnitude(left.data) * magnitude(right.data)
        if bound <= INT64_MAX:
            exact = pc.multiply(left.data, right.data)
            return _narrow_result(exact, left.dtype.scale + right.dtype.scale, context)
    return round_to_decimal128(wide.multiply(left, right, _length(left, right, context)), context)


def divide(left: Vector, right: Vector, context: CallContext) -> Data:
    """``left / right``; the divisor must have no zeros (the caller raised or made them NULL)."""
    out = context.dtype
    up = 10 ** max(out.scale - left.dtype.scale + right.dtype.scale, 0)
    down = 10 ** max(left.dtype.scale - right.dtype.scale - out.scale, 0)
    if left.is_narrow and right.is_narrow:
        room = max(magnitude(right.data), 1) * down <= INT64_MAX // 4
        if room and max(magnitude(left.data), 1) * up <= INT64_MAX // 4:
            length = context.num_rows
            mask = either_null(left.data, right.data, length)
            divisor = as_int64(right.data) * down
            divisor = np.where(divisor == 0, 1, divisor)
            quotient = div_half_up(np.broadcast_to(as_int64(left.data) * up, (length,)), divisor)
            return check_range(with_nulls(quotient, mask), context)
    return _wide_quotient(left, right, context)


def rescale(data: Data, from_scale: int, context: CallContext) -> Data:
    """Narrow values at another scale, rounded HALF_UP, range-checked against the context's type."""
    return _narrow_result(data, from_scale, context, check=True)


def _narrow_result(exact: Data, scale: int, context: CallContext, check: bool = False) -> Data:
    out = context.dtype
    if out.scale < scale:
        if isinstance(exact, pa.Scalar):
            exact = pa.array([exact.as_py()], pa.int64())
            return _narrow_result(exact, scale, context, check)[0]
        mask = pc.is_null(exact) if exact.null_count else None
        drop = scale - out.scale
        values = np.asarray(as_int64(exact))
        if drop > 18:  # int64 ends before 10^19, so the result is 0, or 1 or -1 from 10^19 / 2 on
            ties = (np.abs(values) >= 5 * 10**18) & (drop == 19)
            exact = with_nulls(np.where(ties, np.sign(values), 0), mask)
        else:
            exact = with_nulls(div_half_up(values, 10**drop), mask)
    elif out.scale > scale:
        factor = 10 ** (out.scale - scale)
        if factor > INT64_MAX or magnitude(exact) * factor > INT64_MAX:
            return to_wide(Vector(pa.decimal128(38, scale), exact), context)
        exact = pc.multiply(exact, pa.scalar(factor, pa.int64()))
    return check_range(exact, context) if check else exact


def check_range(data: Data, context: CallContext) -> Data:
    """Raise an error (in ANSI mode) or return NULL for a narrow value with more digits than the context's type.

    If the values contain -2^63, the result is wide: its absolute value exceeds int64, so a narrow decimal cannot be it.
    """
    limit, largest = 10**context.dtype.precision, magnitude(data)
    if largest < limit:
        return data if largest <= INT64_MAX else widen(data, context.dtype)
    if context.mode is EvalMode.ANSI:
        raise out_of_range(context)
    inside = pc.and_(pc.less(data, limit), pc.greater(data, -limit))
    return pc.if_else(inside, data, pa.scalar(None, pa.int64()))


def out_of_range(context: CallContext) -> ExecutionError:
    """Spark's error for a decimal that does not fit its type."""
    out = context.dtype
    return ExecutionError(
        "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
        f"The value cannot be represented as Decimal({out.precision}, {out.scale}). If necessary set "
        '"spark.sql.ansi.enabled" to "false" to bypass this error, and return NULL instead.',
    )


def to_wide(vector: Vector, context: CallContext) -> Data:
    """Any decimal vector as the context's type through decimal256, rounded HALF_UP and range-checked."""
    length = 1 if vector.is_scalar else context.num_rows
    values = vector.array(length).cast(pa.decimal256(76, vector.dtype.scale))
    result = round_to_decimal128(values, context)
    return result[0] if vector.is_scalar else result


def round_to_decimal128(values: pa.Array, context: CallContext) -> pa.Array:
    """decimal256 values as the context's decimal128: round HALF_UP, then range check."""
    out = context.dtype
    if values.type.scale > out.scale:
        values = wide.round_half_up(values, out.scale)
    elif values.type.scale < out.scale:
        whole = out.precision - out.scale
        limit = pa.scalar(decimal.Decimal(10) ** whole, pa.decimal256(76, values.type.scale))
        values = _null_out(values, limit, context).cast(pa.decimal256(76, out.scale), safe=False)
    limit = pa.scalar(decimal.Decimal(10) ** (out.precision - out.scale), pa.decimal256(76, out.scale))
    in_range = _null_out(values, limit, context)
    return narrow_if_possible(in_range.cast(out))


def _null_out(values: pa.Array, limit: pa.Scalar, context: CallContext) -> pa.Array:
    inside = pc.and_(pc.less(values, limit), pc.greater(values, pc.negate(limit)))
    if pc.all(inside).as_py() is not False:
        return values
    if context.mode is EvalMode.ANSI:
        raise out_of_range(context)
    return pc.if_else(inside, values, pa.scalar(None, values.type))


def narrow_if_possible(array: pa.Array) -> pa.Array:
    """Narrow where every value fits, else as it is."""
    narrow_if_possible = narrow(array)
    return array if narrow_if_possible is None else narrow_if_possible


def _wide_quotient(left: Vector, right: Vector, context: CallContext) -> pa.Array:
    length = _length(left, right, context)
    try:
        return round_to_decimal128(wide.divide(left, right, context.dtype.scale, length), context)
    except OverflowError:
        return _quotient_in_python(left, right, length, context)


def _quotient_in_python(left: Vector, right: Vector, length: int, context: CallContext) -> pa.Array:
    """Divide with Python integers, for scaled dividends of more than the 76 digits of decimal256."""
    a, b, present = present_pairs(left, right, length)
    up = context.dtype.scale - left.dtype.scale + right.dtype.scale
    quotient = divide_half_up(a * 10 ** max(up, 0), b * 10 ** max(-up, 0))
    return decimals_from_unscaled(quotient, present, context)


def divide_half_up(values: Any, divisor: Any) -> Any:
    if not len(values):
        return values
    size, by = np.abs(values), np.abs(divisor)
    quotient = (2 * size + by) // (2 * by)
    return np.where((values < 0) != (divisor < 0), -quotient, quotient)


def unscaled_integers(vector: Vector, length: int) -> Any:
    """Return the unscaled Python integers of decimals in an object array, one per row; None for NULL."""
    array = vector.physical(length)
    if vector.is_narrow:
        return np.array(array.to_pylist(), object)
    scale = vector.dtype.scale
    digits = [None if v is None else int(v.scaleb(scale, _EXACT)) for v in array.to_pylist()]
    return np.array(digits, object)


def present_integers(vector: Vector, length: int) -> tuple[Any, Any]:
    """Return the unscaled Python integers of the decimals that are not NULL, and the mask of their rows."""
    unscaled = unscaled_integers(vector, length)
    present = np.array([u is not None for u in unscaled], np.bool_)
    return unscaled[present], present


def present_pairs(left: Vector, right: Vector, length: int) -> tuple[Any, Any, Any]:
    """Return the unscaled Python integers of both sides in the rows without a NULL, and the mask of these rows."""
    a, b = unscaled_integers(left, length), unscaled_integers(right, length)
    present = np.array([x is not None and y is not None for x, y in zip(a, b, strict=True)], np.bool_)
    return a[present], b[present], present


def decimals_from_unscaled(values: Any, present: Any, context: CallContext) -> pa.Array:
    out = context.dtype
    limit = 10**out.precision
    result: list[decimal.Decimal | None] = [None] * len(present)
    for row, value in zip(np.flatnonzero(present), values, strict=True):
        if -limit < value < limit:
            result[row] = decimal.Decimal(int(value)).scaleb(-out.scale, _EXACT)
        elif context.mode is EvalMode.ANSI:
            raise out_of_range(context)
    return narrow_if_possible(pa.array(result, out))


def scalar_narrow(value: decimal.Decimal, dtype: pa.DataType) -> Data:
    """A decimal literal: narrow where its digits fit int64."""
    unscaled = int(value.scaleb(dtype.scale, _EXACT))
    if abs(unscaled) <= INT64_MAX:
        return pa.scalar(unscaled, pa.int64())
    return pa.scalar(value, dtype)


__all__ = ["add", "divide", "multiply", "rescale", "to_wide", "widen"]
