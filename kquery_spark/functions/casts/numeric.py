"""Casts between integers, floats, decimals and booleans."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError
from kquery_spark.functions.casts.floats import CONTEXT, exact_decimal, round_scaled
from kquery_spark.functions.casts.table import cast_rule
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.registry import CallContext, EvalMode
from kquery_spark.types import names as t
from kquery_spark.types.units import INT64_MAX
from kquery_spark.types.vector import Data, Vector, widen


def cast_overflow(source: pa.DataType, target: pa.DataType) -> ExecutionError:
    """Spark's error for a number outside the target's range."""
    return ExecutionError(
        "CAST_OVERFLOW",
        f'The value of the type "{t.spark_name(source).upper()}" cannot be cast to '
        f'"{t.spark_name(target).upper()}" due to an overflow. Use `try_cast` to tolerate overflow and return NULL '
        'instead. If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error.',
    )


def _raise_or_null_outside(
    values: pa.Array, inside: np.ndarray, vector: Vector, context: CallContext
) -> pa.Array:
    """Handle values outside the range: rows that are not ``inside`` raise an error (ANSI) or become NULL (TRY)."""
    present = inside | ~np.asarray(pc.is_valid(vector.data).to_numpy(zero_copy_only=False))
    if present.all():
        return values
    if context.mode is EvalMode.ANSI:
        raise cast_overflow(vector.dtype, context.dtype)
    return pc.if_else(pa.array(inside), values, pa.scalar(None, values.type))


@cast_rule("integral", "integral")
def _int_int(vector: Vector, context: CallContext) -> Data:
    try:
        return vector.data.cast(context.dtype)
    except pa.ArrowInvalid:
        if context.mode is EvalMode.ANSI:
            raise cast_overflow(vector.dtype, context.dtype) from None
    wrapped = vector.data.cast(context.dtype, safe=False)
    if context.mode is EvalMode.LEGACY:
        return wrapped
    return pc.if_else(
        pc.equal(wrapped.cast(vector.dtype), vector.data), wrapped, pa.scalar(None, context.dtype)
    )


@cast_rule("integral", "fractional")
@cast_rule("fractional", "fractional")
def _number_float(vector: Vector, context: CallContext) -> Data:
    return vector.data.cast(context.dtype, safe=False)


@cast_rule("fractional", "integral")
def _float_int(vector: Vector, context: CallContext) -> Data:
    """Truncate toward zero; values outside the range raise an error, become NULL, or saturate and then wrap as in Java."""
    data = vector.data
    values = data.to_numpy(zero_copy_only=False).astype(np.float64)
    mask = np.asarray(pc.is_null(data).to_numpy(zero_copy_only=False))
    bits = context.dtype.bit_width
    whole = np.trunc(values)
    with np.errstate(invalid="ignore"):
        inside = (whole >= -(2.0 ** (bits - 1))) & (whole < 2.0 ** (bits - 1))
    # Spark compares floor(x) <= Long.MaxValue as doubles, so 2^63 itself is let in and saturates
    if bits == 64:
        inside |= whole == 2.0**63
    if context.mode is EvalMode.LEGACY:
        java_bits = 64 if bits == 64 else 32
        low, high = -(2 ** (java_bits - 1)), 2 ** (java_bits - 1) - 1
        clipped = np.where(np.isnan(whole), 0.0, whole)
        exact = np.where(np.abs(clipped) < 2.0 ** (java_bits - 1), clipped, 0).astype(np.int64)
        exact = np.where(clipped >= 2.0 ** (java_bits - 1), high, np.where(clipped <= low, low, exact))
        return pa.array(exact.astype(f"int{bits}"), context.dtype, mask=mask)
    safe = np.where(inside & (np.abs(whole) < 2.0**63), whole, 0).astype(np.int64)
    if bits == 64:
        safe = np.where(whole == 2.0**63, 2**63 - 1, np.where(whole == -(2.0**63), -(2**63), safe))
    result = pa.array(safe.astype(f"int{bits}"), context.dtype, mask=mask)
    return _raise_or_null_outside(result, inside, vector, context)


@cast_rule("boolean", "decimal")
@cast_rule("integral", "decimal")
def _int_decimal(vector: Vector, context: CallContext) -> Data:
    return dk.rescale(vector.data.cast(t.LONG), 0, context)


@cast_rule("decimal", "decimal")
def _decimal_decimal(vector: Vector, context: CallContext) -> Data:
    if vector.is_narrow:
        if vector.dtype.scale == context.dtype.scale and vector.dtype.precision <= context.dtype.precision:
            return vector.data
        return dk.rescale(vector.data, vector.dtype.scale, context)
    return dk.to_wide(vector, context)


@cast_rule("decimal", "fractional")
def _decimal_float(vector: Vector, context: CallContext) -> Data:
    scale = vector.dtype.scale
    if context.dtype == t.DOUBLE and vector.is_narrow and dk.magnitude(vector.data) < 2**53 and scale <= 22:
        # both the digits and the power of ten are exact doubles, so one division rounds once: the nearest double
        return pc.divide(vector.data.cast(t.DOUBLE), pa.scalar(float(10**scale)))
    return vector.plain().cast(t.STRING).cast(context.dtype)


@cast_rule("decimal", "integral")
def _decimal_int(vector: Vector, context: CallContext) -> Data:
    """Truncate toward zero; values outside the range raise an error, become NULL, or wrap as in Java's ``longValue``."""
    scale = vector.dtype.scale
    if vector.dtype.precision > 18 and context.dtype != t.LONG and context.mode is not EvalMode.LEGACY:
        # Spark goes through double for decimals that are not longs: 0.99999999999999999999 becomes 1
        inner = CallContext(t.DOUBLE, context.mode, context.tz, context.num_rows)
        return _float_int(Vector(vector.dtype, _decimal_float(vector, inner)), context)
    if not vector.is_narrow:
        return _wide_decimal_int(vector, context)
    if scale:
        raw = dk.as_int64(vector.data)
        quotient = np.abs(raw) // 10**scale if scale <= 18 else np.zeros_like(raw)
        mask = pc.is_null(vector.data) if vector.data.null_count else None
        values = dk.with_nulls(np.where(np.asarray(raw) < 0, -quotient, quotient), mask)
    else:
        values = vector.data
    return _int_int(Vector(t.LONG, values), context) if context.dtype != t.LONG else values


def _wide_decimal_int(vector: Vector, context: CallContext) -> Data:
    """Convert decimals of more than 18 digits, which are rare, with Python integers."""
    bits = context.dtype.bit_width
    limit = 2 ** (bits - 1)
    wholes: list[int | None] = []
    for unscaled in dk.unscaled_integers(vector, context.num_rows):
        if unscaled is None:
            wholes.append(None)
            continue
        size = abs(unscaled) // 10**vector.dtype.scale
        whole = -size if unscaled < 0 else size
        if -limit <= whole < limit:
            wholes.append(whole)
        elif context.mode is EvalMode.ANSI:
            raise cast_overflow(vector.dtype, context.dtype)
        else:
            wraps = (whole + limit) % (2 * limit) - limit
            wholes.append(wraps if context.mode is EvalMode.LEGACY else None)
    return pa.array(wholes, context.dtype)


@cast_rule("fractional", "decimal")
def _float_decimal(vector: Vector, context: CallContext) -> Data:
    """Convert to the decimal that the double's string spells, rounded HALF_UP; NaN and infinities are NULL in every mode.

    Like Spark, it widens a float to double first, so 0.1f becomes 0.10000000149011612.
    """
    values = vector.data.cast(t.DOUBLE).to_numpy(zero_copy_only=False)
    missing = ~np.isfinite(values)
    out = context.dtype
    scaled, certain = round_scaled(np.where(missing, 0.0, values), out.scale)
    with np.errstate(invalid="ignore"):
        unscaled = np.where(certain, scaled, 0).astype(np.int64)
    slow = np.flatnonzero(~certain)
    exact = _exact_decimals(values[slow].tolist(), context)
    if out.precision <= 18:
        outside = np.abs(unscaled) >= 10.0**out.precision
        if outside.any() and context.mode is EvalMode.ANSI:
            raise dk.out_of_range(context)
        missing = missing | outside
    narrow = _unscaled_int64s(exact, out.scale)
    if narrow is not None:
        unscaled[slow] = narrow
        missing[slow[[d is None for d in exact]]] = True
        return pa.array(unscaled, mask=missing)
    wide = widen(pa.array(unscaled, mask=missing), out).to_pylist()
    for row, number_or_none in zip(slow.tolist(), exact, strict=True):
        wide[row] = number_or_none if not missing[row] else None
    return pa.array(wide, out)


def _unscaled_int64s(exact: list[decimal.Decimal | None], scale: int) -> list[int] | None:
    """The unscaled integers of decimals, 0 for NULL; None if one of them does not fit into int64."""
    unscaled = [0 if d is None else int(d.scaleb(scale, CONTEXT)) for d in exact]
    return unscaled if all(abs(value) <= INT64_MAX for value in unscaled) else None


def _exact_decimals(values: list[float], context: CallContext) -> list[decimal.Decimal | None]:
    """The decimals that the strings of doubles spell; too many digits are an error in ANSI mode, otherwise None."""
    out = context.dtype
    unit = decimal.Decimal(1).scaleb(-out.scale)
    limit = decimal.Decimal(10) ** (out.precision - out.scale)
    exact: list[decimal.Decimal | None] = []
    for value in values:
        if abs(value) >= float(limit) * 2:  # too large whatever its last digits are
            number = limit
        else:
            number = exact_decimal(value).quantize(unit, decimal.ROUND_HALF_UP, CONTEXT)
        fits = abs(number) < limit
        if not fits and context.mode is EvalMode.ANSI:
            raise dk.out_of_range(context)
        exact.append(number if fits else None)
    return exact


@cast_rule("boolean", "integral")
def _bool_int(vector: Vector, context: CallContext) -> Data:
    return vector.data.cast(context.dtype)


@cast_rule("boolean", "fractional")
def _bool_float(vector: Vector, context: CallContext) -> Data:
    return vector.data.cast(t.INT).cast(context.dtype)


@cast_rule("integral", "boolean")
@cast_rule("fractional", "boolean")
def _number_bool(vector: Vector, context: CallContext) -> Data:
    return pc.not_equal(vector.data, pa.scalar(0, vector.data.type))


@cast_rule("decimal", "boolean")
def _decimal_bool(vector: Vector, context: CallContext) -> Data:
    if vector.is_narrow:
        return pc.not_equal(vector.data, 0)
    zero = pa.scalar(decimal.Decimal(0), vector.data.type)
    return pc.not_equal(vector.data, zero)
