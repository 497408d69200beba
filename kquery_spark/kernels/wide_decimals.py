"""Exact decimal arithmetic on 256-bit integers, for values or intermediate results that do not fit into int64.

Arrow's decimal256 kernels are integer arithmetic; the precision of the types only decides whether Arrow allows an operation.
So operands are unscaled integers here (1.25 is 125), typed with a precision that Arrow allows for the operation
(``with_type``), and bounds on the actual values prove that 76 digits are enough.

Arrow's 256-bit quotients are sometimes wrong (pyarrow 26: ``divide``, ``round`` and casts to a smaller scale, for example of
9223372036854775807 at scale 38). So a quotient is only an estimate, which is corrected by its remainder: for 7 / 2 and the
estimate 2, the remainder is 7 - 2 * 2 = 3, which is not below 2, so the estimate grows by floor(3 / 2) = 1.
"""

from __future__ import annotations

import decimal

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.types.vector import Vector

_MAX_DIGITS = 76
_LIMIT = 10 ** (_MAX_DIGITS - 1)
_MAX_FACTOR_DIGITS = 37  # Arrow gives the product of two factors of this precision 75 digits, which it allows
_MAX_CORRECTIONS = 10  # more than any observed quotient needed
#: The scale of Arrow's quotient of two integers when the divisor is typed with precision 1
_ARROW_QUOTIENT_SCALE = 4


def unscaled(vector: Vector, length: int) -> pa.Array:
    """Return the unscaled integers of a decimal vector as decimal256(76, 0)."""
    data = vector.physical(length)
    if vector.is_narrow:
        return data.cast(pa.decimal256(_MAX_DIGITS, 0))
    return with_type(data.cast(pa.decimal256(_MAX_DIGITS, vector.dtype.scale)), _MAX_DIGITS, 0)


def with_type(digits: pa.Array, precision: int, scale: int) -> pa.Array:
    """Reinterpret 256-bit integers with another precision and scale, without any check."""
    return pa.Array.from_buffers(
        pa.decimal256(precision, scale), len(digits), digits.buffers(), digits.null_count, digits.offset
    )


def add(left: Vector, right: Vector, sign: int, length: int) -> pa.Array:
    """Return ``left + sign * right`` at the larger scale, as decimal256(76, scale).

    An operand that is too large for 76 digits at that scale is clipped to the largest value that fits. Such an operand
    overflows the type of any sum, and so does the clipped one, so the caller sees the same overflow.
    """
    scale = max(left.dtype.scale, right.dtype.scale)
    sides = []
    for side in (left, right):
        digits, up = unscaled(side, length), 10 ** (scale - side.dtype.scale)
        limit = _LIMIT // up
        if _magnitude(digits) >= limit:
            digits = _clip(digits, limit - 1)
        sides.append(with_type(_times(digits, up), _MAX_DIGITS - 1, 0))
    total = (pc.add if sign > 0 else pc.subtract)(*sides)
    return with_type(total, _MAX_DIGITS, scale)


def multiply(left: Vector, right: Vector, length: int) -> pa.Array:
    """Return ``left * right`` at the sum of their scales, as decimal256(76, scale)."""
    product = _product(unscaled(left, length), unscaled(right, length))
    return with_type(product, _MAX_DIGITS, left.dtype.scale + right.dtype.scale)


def divide(left: Vector, right: Vector, scale: int, length: int) -> pa.Array:
    """Return ``left / right`` rounded HALF_UP at a scale, as decimal256(76, scale).

    Where the divisor is 0, one of the operands must be NULL. Raises OverflowError if a step needs more than 76 digits.
    """
    a, b = unscaled(left, length), unscaled(right, length)
    negative = pc.xor(_negative(a), _negative(b))
    a, b = pc.abs(a), pc.abs(b)
    # The unscaled quotient is a * 10^up / b. Arrow's quotient already has four decimals, so the dividend is multiplied by
    # 10^4 less than that. If ``up`` is below 4, the divisor is multiplied by 10^(4 - up) instead.
    up = scale - left.dtype.scale + right.dtype.scale
    up, down = 10 ** max(up, _ARROW_QUOTIENT_SCALE), 10 ** max(_ARROW_QUOTIENT_SCALE - up, 0)
    if max(_magnitude(a), 1) * up >= _LIMIT or max(_magnitude(b), 1) * down >= _LIMIT:
        raise OverflowError
    b = _times(b, down)
    estimate = pc.divide(
        with_type(_times(a, up // 10**_ARROW_QUOTIENT_SCALE), _MAX_DIGITS - _ARROW_QUOTIENT_SCALE, 0),
        with_type(b, 1, 0),
    )
    quotient = _correct_and_round(with_type(estimate, _MAX_DIGITS, 0), _times(a, up), b)
    return with_type(_signed(quotient, negative), _MAX_DIGITS, scale)


def round_half_up(values: pa.Array, scale: int) -> pa.Array:
    """Round decimal256 values HALF_UP to a smaller scale; return decimal256(76, scale)."""
    drop = values.type.scale - scale
    digits = with_type(values, _MAX_DIGITS, 0)
    negative, digits = _negative(digits), pc.abs(digits)
    estimate = with_type(digits, _MAX_DIGITS, drop).cast(pa.decimal256(_MAX_DIGITS, 0), safe=False)
    by = pa.repeat(pa.scalar(decimal.Decimal(10**drop), digits.type), len(digits))
    return with_type(_signed(_correct_and_round(estimate, digits, by), negative), _MAX_DIGITS, scale)


def _correct_and_round(quotient: pa.Array, dividend: pa.Array, divisor: pa.Array) -> pa.Array:
    """Return the quotient of non-negative integers, rounded HALF_UP, from an estimate of it."""
    zero, one = (pa.scalar(decimal.Decimal(n), pa.decimal256(1, 0)) for n in (0, 1))
    for _ in range(_MAX_CORRECTIONS):
        remainder = _minus(dividend, _product(quotient, divisor))
        is_exact = pc.and_(pc.greater_equal(remainder, zero), pc.less(remainder, divisor))
        if not is_exact.false_count:
            # 2 * remainder >= divisor, written without a product that might overflow
            up = pc.greater_equal(remainder, _minus(divisor, remainder))
            return _plus(quotient, pc.if_else(up, one, zero))
        quotient = _plus(quotient, pc.if_else(is_exact, zero, _quotient_correction(remainder, divisor)))
    raise ArithmeticError("a 256-bit quotient is still wrong after the last correction")


def _quotient_correction(remainder: pa.Array, divisor: pa.Array) -> pa.Array:
    """Estimate ``remainder / divisor`` for a remainder outside of [0, divisor); at least 1, or at most -1 if negative."""
    about = pc.floor(pc.divide(remainder.cast(pa.float64()), divisor.cast(pa.float64())))
    negative = pc.less(remainder, pa.scalar(decimal.Decimal(0), pa.decimal256(1, 0)))
    steps = pc.if_else(negative, pc.min_element_wise(about, -1.0), pc.max_element_wise(about, 1.0))
    return steps.cast(pa.decimal256(_MAX_DIGITS - 1, 0))


def _plus(left: pa.Array, right: pa.Array) -> pa.Array:
    return with_type(pc.add(with_type(left, _MAX_DIGITS - 1, 0), right), _MAX_DIGITS, 0)


def _minus(left: pa.Array, right: pa.Array) -> pa.Array:
    left, right = with_type(left, _MAX_DIGITS - 1, 0), with_type(right, _MAX_DIGITS - 1, 0)
    return with_type(pc.subtract(left, right), _MAX_DIGITS, 0)


def _product(left: pa.Array, right: pa.Array) -> pa.Array:
    return with_type(
        pc.multiply(with_type(left, _MAX_FACTOR_DIGITS, 0), with_type(right, _MAX_FACTOR_DIGITS, 0)),
        _MAX_DIGITS,
        0,
    )


def _times(digits: pa.Array, factor: int) -> pa.Array:
    if factor == 1:
        return digits
    power = pa.scalar(decimal.Decimal(factor), pa.decimal256(len(str(factor)), 0))
    product = pc.multiply(with_type(digits, _MAX_DIGITS - 1 - power.type.precision, 0), power)
    return with_type(product, _MAX_DIGITS, 0)


def _clip(digits: pa.Array, most: int) -> pa.Array:
    low, high = (pa.scalar(decimal.Decimal(n), digits.type) for n in (-most, most))
    return pc.max_element_wise(low, pc.min_element_wise(high, digits, skip_nulls=False), skip_nulls=False)


def _negative(digits: pa.Array) -> pa.Array:
    return pc.less(digits, pa.scalar(decimal.Decimal(0), digits.type))


def _signed(digits: pa.Array, negative: pa.Array) -> pa.Array:
    return pc.if_else(negative, pc.negate(digits), digits)


def _magnitude(digits: pa.Array) -> int:
    """Return the largest absolute value; 0 without values."""
    if len(digits) == digits.null_count:
        return 0
    ends = pc.min_max(digits)
    return max(abs(int(ends["min"].as_py())), abs(int(ends["max"].as_py())))
