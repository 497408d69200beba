"""Exact decimal arithmetic where int64 does not hold the values or a step on the way: integers of 256 bits.

Arrow's decimal256 kernels are integer arithmetic under a precision that only decides whether an operation is allowed. So
operands are unscaled integers here, labelled with whatever precision lets the operation pass, and bounds on the values
themselves prove that 76 digits are enough. Arrow's quotients of 256 bits are wrong now and then (pyarrow 26: ``divide``,
``round`` and casts to a smaller scale, so of 9223372036854775807 at 38 digits after the point), and are corrected by their
remainder.
"""

from __future__ import annotations

import decimal

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.types.vector import Vector

_MAX_DIGITS = 76
_LIMIT = 10 ** (_MAX_DIGITS - 1)
_MAX_FACTOR_DIGITS = 37  # digits of two factors whose product Arrow takes to have 75
_MAX_CORRECTIONS = 10  # more than any quotient has been seen to need
#: Digits after the point that Arrow gives a quotient of whole numbers, the divisor labelled as one digit
_ARROW_QUOTIENT_SCALE = 4


def unscaled(vector: Vector, length: int) -> pa.Array:
    """The digits of a decimal vector as whole numbers, decimal256(76, 0)."""
    data = vector.physical(length)
    if vector.is_narrow:
        return data.cast(pa.decimal256(_MAX_DIGITS, 0))
    return labelled(data.cast(pa.decimal256(_MAX_DIGITS, vector.dtype.scale)), _MAX_DIGITS, 0)


def labelled(digits: pa.Array, precision: int, scale: int) -> pa.Array:
    """The same 256-bit integers under another precision and scale."""
    return pa.Array.from_buffers(
        pa.decimal256(precision, scale), len(digits), digits.buffers(), digits.null_count, digits.offset
    )


def added(left: Vector, right: Vector, sign: int, length: int) -> pa.Array:
    """``left + sign * right`` at the larger scale, as decimal256(76, scale).

    Operands too large for 76 digits at that scale are cut down to what fits: one that has so many digits before the point
    is past the range of any sum's type, and so is what remains of it.
    """
    scale = max(left.dtype.scale, right.dtype.scale)
    sides = []
    for side in (left, right):
        digits, up = unscaled(side, length), 10 ** (scale - side.dtype.scale)
        limit = _LIMIT // up
        if _magnitude(digits) >= limit:
            digits = _clipped(digits, limit - 1)
        sides.append(labelled(_times(digits, up), _MAX_DIGITS - 1, 0))
    total = (pc.add if sign > 0 else pc.subtract)(*sides)
    return labelled(total, _MAX_DIGITS, scale)


def multiplied(left: Vector, right: Vector, length: int) -> pa.Array:
    """``left * right`` at the sum of their scales, as decimal256(76, scale)."""
    product = _product(unscaled(left, length), unscaled(right, length))
    return labelled(product, _MAX_DIGITS, left.dtype.scale + right.dtype.scale)


def divided(left: Vector, right: Vector, scale: int, length: int) -> pa.Array:
    """``left / right`` rounded HALF_UP at a scale, as decimal256(76, scale).

    Where the divisor is 0 an operand must be NULL. Raises OverflowError where 76 digits do not hold the steps.
    """
    a, b = unscaled(left, length), unscaled(right, length)
    negative = pc.xor(_negative(a), _negative(b))
    a, b = pc.abs(a), pc.abs(b)
    up = scale - left.dtype.scale + right.dtype.scale
    up, down = 10 ** max(up, _ARROW_QUOTIENT_SCALE), 10 ** max(_ARROW_QUOTIENT_SCALE - up, 0)
    if max(_magnitude(a), 1) * up >= _LIMIT or max(_magnitude(b), 1) * down >= _LIMIT:
        raise OverflowError
    b = _times(b, down)
    estimate = pc.divide(
        labelled(_times(a, up // 10**_ARROW_QUOTIENT_SCALE), _MAX_DIGITS - _ARROW_QUOTIENT_SCALE, 0),
        labelled(b, 1, 0),
    )
    quotient = _half_up(labelled(estimate, _MAX_DIGITS, 0), _times(a, up), b)
    return labelled(_signed(quotient, negative), _MAX_DIGITS, scale)


def rounded(values: pa.Array, scale: int) -> pa.Array:
    """decimal256 values rounded HALF_UP at a smaller scale, as decimal256(76, scale)."""
    drop = values.type.scale - scale
    digits = labelled(values, _MAX_DIGITS, 0)
    negative, digits = _negative(digits), pc.abs(digits)
    estimate = labelled(digits, _MAX_DIGITS, drop).cast(pa.decimal256(_MAX_DIGITS, 0), safe=False)
    by = pa.repeat(pa.scalar(decimal.Decimal(10**drop), digits.type), len(digits))
    return labelled(_signed(_half_up(estimate, digits, by), negative), _MAX_DIGITS, scale)


def _half_up(quotient: pa.Array, dividend: pa.Array, divisor: pa.Array) -> pa.Array:
    """The rounded quotient of integers that are not negative, from one that is near it."""
    zero, one = (pa.scalar(decimal.Decimal(n), pa.decimal256(1, 0)) for n in (0, 1))
    for _ in range(_MAX_CORRECTIONS):
        rest = _minus(dividend, _product(quotient, divisor))
        inside = pc.and_(pc.greater_equal(rest, zero), pc.less(rest, divisor))
        if not inside.false_count:
            up = pc.greater_equal(rest, _minus(divisor, rest))
            return _plus(quotient, pc.if_else(up, one, zero))
        quotient = _plus(quotient, pc.if_else(inside, zero, _missing(rest, divisor)))
    raise ArithmeticError("a quotient of 256 bits stayed wrong")


def _missing(rest: pa.Array, divisor: pa.Array) -> pa.Array:
    """About how often the divisor is still in a rest outside of [0, divisor), at least once or minus once."""
    about = pc.floor(pc.divide(rest.cast(pa.float64()), divisor.cast(pa.float64())))
    negative = pc.less(rest, pa.scalar(decimal.Decimal(0), pa.decimal256(1, 0)))
    steps = pc.if_else(negative, pc.min_element_wise(about, -1.0), pc.max_element_wise(about, 1.0))
    return steps.cast(pa.decimal256(_MAX_DIGITS - 1, 0))


def _plus(left: pa.Array, right: pa.Array) -> pa.Array:
    return labelled(pc.add(labelled(left, _MAX_DIGITS - 1, 0), right), _MAX_DIGITS, 0)


def _minus(left: pa.Array, right: pa.Array) -> pa.Array:
    left, right = labelled(left, _MAX_DIGITS - 1, 0), labelled(right, _MAX_DIGITS - 1, 0)
    return labelled(pc.subtract(left, right), _MAX_DIGITS, 0)


def _product(left: pa.Array, right: pa.Array) -> pa.Array:
    return labelled(
        pc.multiply(labelled(left, _MAX_FACTOR_DIGITS, 0), labelled(right, _MAX_FACTOR_DIGITS, 0)),
        _MAX_DIGITS,
        0,
    )


def _times(digits: pa.Array, factor: int) -> pa.Array:
    if factor == 1:
        return digits
    power = pa.scalar(decimal.Decimal(factor), pa.decimal256(len(str(factor)), 0))
    product = pc.multiply(labelled(digits, _MAX_DIGITS - 1 - power.type.precision, 0), power)
    return labelled(product, _MAX_DIGITS, 0)


def _clipped(digits: pa.Array, most: int) -> pa.Array:
    low, high = (pa.scalar(decimal.Decimal(n), digits.type) for n in (-most, most))
    return pc.max_element_wise(low, pc.min_element_wise(high, digits, skip_nulls=False), skip_nulls=False)


def _negative(digits: pa.Array) -> pa.Array:
    return pc.less(digits, pa.scalar(decimal.Decimal(0), digits.type))


def _signed(digits: pa.Array, negative: pa.Array) -> pa.Array:
    return pc.if_else(negative, pc.negate(digits), digits)


def _magnitude(digits: pa.Array) -> int:
    """Largest absolute value, 0 of none."""
    if len(digits) == digits.null_count:
        return 0
    ends = pc.min_max(digits)
    return max(abs(int(ends["min"].as_py())), abs(int(ends["max"].as_py())))
