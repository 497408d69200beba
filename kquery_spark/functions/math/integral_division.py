"""Division with remainder: ``%``, ``pmod``, and ``div``, of integers, floats, and decimals."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.math.overflow import divide_by_zero, overflow, remainder_by_zero
from kquery_spark.functions.registry import CallContext, EvalMode
from kquery_spark.types import names as t
from kquery_spark.types.units import INT64_MAX
from kquery_spark.types.vector import Data, Vector


def zeros_to_null(left: Vector, right: Vector, context: CallContext, error: ExecutionError) -> Vector:
    """Replace zeros in the divisor with NULL. In ANSI mode, raise ``error`` if the dividend of a zero is not NULL."""
    data = right.data
    zero = pc.equal(data, pa.scalar(decimal.Decimal(0) if t.is_decimal(data.type) else 0, data.type))
    has_zero = pc.any(zero).as_py() if not isinstance(zero, pa.Scalar) else zero.as_py()
    if not has_zero:
        return right
    if context.mode is EvalMode.ANSI:
        hit = pc.and_(zero, pc.is_valid(left.data))
        if hit.as_py() if isinstance(hit, pa.Scalar) else pc.any(hit).as_py():
            raise error
    null = pa.scalar(None, data.type)
    if right.is_scalar:
        return Vector(right.dtype, null)
    return Vector(right.dtype, pc.if_else(zero, null, data))


def _integer_operands(left: Vector, right: Vector, context: CallContext) -> tuple[Any, Any, Any]:
    """Return the dividends, the divisors (never 0), and the mask of NULLs (or None) as numpy arrays."""
    n = context.num_rows
    mask = dk.either_null(left.data, right.data, n)
    a, b = left.physical(n), right.physical(n)
    fill_a, fill_b = pa.scalar(0, a.type), pa.scalar(1, b.type)
    an = (a.fill_null(fill_a) if a.null_count else a).to_numpy(zero_copy_only=False)
    bn = (b.fill_null(fill_b) if b.null_count else b).to_numpy(zero_copy_only=False)
    return an, bn, None if mask is None else mask.to_numpy(zero_copy_only=False)


def _same_scale(left: Vector, right: Vector) -> tuple[Vector, Vector] | None:
    """Return both decimals at the larger scale, as unscaled int64; None if one of them does not fit."""
    scale = max(left.dtype.scale, right.dtype.scale)
    sides = []
    for side in (left, right):
        factor = 10 ** (scale - side.dtype.scale)
        if not side.is_narrow or factor > INT64_MAX or dk.magnitude(side.data) * factor > INT64_MAX:
            return None
        sides.append(Vector(pa.decimal128(38, scale), dk.scaled(side.data, factor)))
    return sides[0], sides[1]


def _big_pair(left: Vector, right: Vector, length: int) -> tuple[Any, Any, Any]:
    """Return what ``present_pairs`` returns, with the integers of both sides at the larger scale."""
    scale = max(left.dtype.scale, right.dtype.scale)
    a, b, present = dk.present_pairs(left, right, length)
    return a * 10 ** (scale - left.dtype.scale), b * 10 ** (scale - right.dtype.scale), present


def remainder(args: Sequence[Vector], context: CallContext) -> Data:
    """``%``: the remainder has the sign of the dividend."""
    return _modulo(args, context, positive=False)


def pmod(args: Sequence[Vector], context: CallContext) -> Data:
    """``pmod``: for a positive divisor, the remainder is not negative."""
    return _modulo(args, context, positive=True)


def _modulo(args: Sequence[Vector], context: CallContext, positive: bool) -> Data:
    left, right = args
    right = zeros_to_null(left, right, context, remainder_by_zero())
    out = context.dtype
    if t.is_decimal(out):
        pair = _same_scale(left, right)
        if pair is None:
            return _modulo_wide(left, right, context, positive)
        left, right = pair
    a, b, mask = _integer_operands(left, right, context)
    form = a.dtype
    if form.itemsize < 4:  # Java computes bytes and shorts as ints
        a, b = a.astype(np.int32), b.astype(np.int32)
    with np.errstate(all="ignore"):
        remainders = np.fmod(a, np.where(b == -1, 1, b)) if a.dtype.kind == "i" else np.fmod(a, b)
        if positive and t.is_decimal(out):
            # For a negative divisor, the result is the remainder itself, and remainders + b could exceed int64.
            remainders = np.where((remainders < 0) & (b > 0), remainders + b, remainders)
        elif positive:  # remainders + b of integers may wrap around, as in Java
            remainders = np.where(remainders < 0, np.fmod(remainders + b, b), remainders)
    result = pa.array(remainders.astype(form), mask=mask)
    if t.is_decimal(out):
        return dk.rescale(result, left.dtype.scale, context)
    return result


def _modulo_wide(left: Vector, right: Vector, context: CallContext, positive: bool) -> Data:
    """Compute ``%`` or ``pmod`` of decimals that have no common scale within int64, with Python integers."""
    a, b, present = _big_pair(left, right, context.num_rows)
    quotients = np.abs(a) // np.abs(b) if len(a) else a
    if any(len(str(q).rstrip("0")) > 39 for q in quotients[quotients >= 10**39]):
        # Spark divides with 39 digits, and Java's remainder gives up on a longer quotient, in every mode
        raise ExecutionError(
            "NUMERIC_VALUE_OUT_OF_RANGE", "Division impossible: the quotient has too many digits."
        )
    size = np.abs(a) % np.abs(b) if len(a) else a
    remainders = np.where(a < 0, -size, size) if len(a) else a
    if positive and len(a):
        size2 = np.abs(remainders + b) % np.abs(b)
        remainders = np.where(remainders < 0, np.where(remainders + b < 0, -size2, size2), remainders)
    scale, out = max(left.dtype.scale, right.dtype.scale), context.dtype
    if out.scale < scale and len(a):
        remainders = dk.divide_half_up(
            remainders, np.full(len(remainders), 10 ** (scale - out.scale), object)
        )
    return dk.decimals_from_unscaled(remainders * 10 ** max(out.scale - scale, 0), present, context)


def integral_divide(args: Sequence[Vector], context: CallContext) -> Data:
    """``div``: the quotient without its fraction, as a bigint."""
    left, right = args
    right = zeros_to_null(left, right, context, divide_by_zero())
    if t.is_decimal(left.dtype):
        pair = _same_scale(left, right)
        if pair is None:
            return _integral_divide_wide(left, right, context)
        left, right = pair
    a, b, mask = _integer_operands(left, right, context)
    lowest = np.iinfo(np.int64).min
    wraps = (a == lowest) & (b == -1)
    if mask is not None:
        wraps &= ~mask
    if context.mode is EvalMode.ANSI and wraps.any():
        raise overflow(t.LONG)
    safe = np.where(b == -1, 1, b)
    quotient_values = (a - np.fmod(a, safe)) // safe
    with np.errstate(all="ignore"):
        quotient_values = np.where(b == -1, -a, quotient_values)
    if context.mode is EvalMode.TRY and wraps.any():
        mask = wraps if mask is None else mask | wraps
    return pa.array(np.asarray(quotient_values, np.int64), mask=mask)


def _integral_divide_wide(left: Vector, right: Vector, context: CallContext) -> Data:
    """``div`` of decimals that have no common scale within int64."""
    n = context.num_rows
    a, b, present = _big_pair(left, right, n)
    if not len(a):
        return pa.nulls(n, t.LONG)
    size = np.abs(a) // np.abs(b)
    values = np.where((a < 0) != (b < 0), -size, size)
    inside = np.array([abs(v) < 10**38 for v in values], np.bool_)
    if not inside.all():  # more digits than a decimal of Spark can have
        if context.mode is EvalMode.ANSI:
            raise dk.out_of_range(CallContext(pa.decimal128(38, 0)))
        values, present[present] = values[inside], inside
    # Spark returns the low 64 bits without checking the higher bits, in every mode
    wrapped = (values + 2**63) % 2**64 - 2**63
    quotients: list[int | None] = [None] * n
    for row, value in zip(np.flatnonzero(present), wrapped, strict=True):
        quotients[row] = int(value)
    return pa.array(quotients, t.LONG)
