"""Casts among integers, floats, decimals and booleans."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError
from kquery_spark.functions import decimal_kernels as dk
from kquery_spark.functions.casts.table import cast_rule
from kquery_spark.functions.registry import CallContext, EvalMode
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector, narrow


def cast_overflow(source: pa.DataType, target: pa.DataType) -> ExecutionError:
    """Spark's error for a number outside the target's range."""
    return ExecutionError(
        "CAST_OVERFLOW",
        f'The value of the type "{t.spark_name(source).upper()}" cannot be cast to '
        f'"{t.spark_name(target).upper()}" due to an overflow. Use `try_cast` to tolerate overflow and return NULL '
        'instead. If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error.',
    )


def _null_outside(values: pa.Array, inside: np.ndarray, vector: Vector, context: CallContext) -> pa.Array:
    """Rows not ``inside`` raise (ANSI) or become NULL (try)."""
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
def _int_float(vector: Vector, context: CallContext) -> Data:
    return vector.data.cast(context.dtype, safe=False)


@cast_rule("fractional", "fractional")
def _float_float(vector: Vector, context: CallContext) -> Data:
    return vector.data.cast(context.dtype, safe=False)


@cast_rule("fractional", "integral")
def _float_int(vector: Vector, context: CallContext) -> Data:
    """Truncate toward zero; outside the range raise, give NULL, or saturate then wrap as Java does."""
    data = vector.data
    values = data.to_numpy(zero_copy_only=False).astype(np.float64)
    mask = np.asarray(pc.is_null(data).to_numpy(zero_copy_only=False))
    bits = context.dtype.bit_width
    whole = np.trunc(values)
    with np.errstate(invalid="ignore"):
        inside = (whole >= -(2.0 ** (bits - 1))) & (whole < 2.0 ** (bits - 1))
    if (
        bits == 64
    ):  # Spark compares floor(x) <= Long.MaxValue as doubles, so 2^63 itself is let in and saturates
        inside |= whole == 2.0**63
    if context.mode is EvalMode.LEGACY:
        java_bits = 64 if bits == 64 else 32
        low, high = -(2 ** (java_bits - 1)), 2 ** (java_bits - 1) - 1
        clipped = np.where(np.isnan(whole), 0.0, whole)
        exact = np.where(np.abs(clipped) < 2.0 ** (java_bits - 1), clipped, 0).astype(np.int64)
        exact = np.where(clipped >= 2.0 ** (java_bits - 1), high, np.where(clipped < low, low, exact))
        return pa.array(exact.astype(f"int{bits}"), context.dtype, mask=mask)
    safe = np.where(inside & (np.abs(whole) < 2.0**63), whole, 0).astype(np.int64)
    if bits == 64:
        safe = np.where(whole == 2.0**63, 2**63 - 1, np.where(whole == -(2.0**63), -(2**63), safe))
    result = pa.array(safe.astype(f"int{bits}"), context.dtype, mask=mask)
    return _null_outside(result, inside, vector, context)


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
    if vector.is_narrow and dk.magnitude(vector.data) < 2**53 and scale <= 22:
        # both the digits and the power of ten are exact doubles, so one division rounds once: the nearest double
        doubles = pc.divide(vector.data.cast(t.DOUBLE), pa.scalar(float(10**scale)))
        return doubles if context.dtype == t.DOUBLE else _nearest_float(vector, context)
    if context.dtype == t.FLOAT:
        return _nearest_float(vector, context)
    return vector.plain().cast(t.STRING).cast(t.DOUBLE)


def _nearest_float(vector: Vector, context: CallContext) -> Data:
    return vector.plain().cast(t.STRING).cast(t.FLOAT)


@cast_rule("decimal", "integral")
def _decimal_int(vector: Vector, context: CallContext) -> Data:
    """Truncate toward zero; past the range raise, give NULL, or wrap as Java's ``longValue`` and narrowing do."""
    scale = vector.dtype.scale
    if not vector.is_narrow:
        whole = pc.trunc(vector.plain())
        slim = narrow(whole.cast(pa.decimal128(38, 0), safe=False)) if scale else narrow(whole)
        if slim is None:
            if context.mode is EvalMode.ANSI:
                raise cast_overflow(vector.dtype, context.dtype)
            inside = pc.less_equal(pc.abs(whole), pa.scalar(2**63 - 1).cast(pa.decimal128(38, scale)))
            kept = pc.if_else(inside, whole, pa.scalar(None, whole.type))
            if context.mode is EvalMode.LEGACY:
                raise ExecutionError("CAST_OVERFLOW", "a decimal past bigint cannot be wrapped by the engine")
            slim = narrow(kept.cast(pa.decimal128(38, 0), safe=False))
        values = slim
    elif scale:
        raw = dk.as_int64(vector.data)
        quotient = np.abs(raw) // 10**scale
        mask = pc.is_null(vector.data) if vector.data.null_count else None
        values = dk.with_nulls(np.where(np.asarray(raw) < 0, -quotient, quotient), mask)
    else:
        values = vector.data
    return _int_int(Vector(t.LONG, values), context) if context.dtype != t.LONG else values


@cast_rule("fractional", "decimal")
def _float_decimal(vector: Vector, context: CallContext) -> Data:
    """The shortest decimal that reads back as the float, rounded HALF_UP: what ``BigDecimal.valueOf`` gives."""
    finite = pc.is_finite(vector.data)
    data = vector.data
    if pc.any(pc.invert(finite)).as_py():
        if context.mode is EvalMode.ANSI:
            raise dk.out_of_range(context)
        data = pc.if_else(finite, data, pa.scalar(None, data.type))
    limit = 10.0 ** (context.dtype.precision - context.dtype.scale)
    big = pc.greater_equal(pc.abs(data), pa.scalar(limit * 2, data.type)) if limit < 1e38 else None
    if big is not None and pc.any(big).as_py():
        if context.mode is EvalMode.ANSI:
            raise dk.out_of_range(context)
        data = pc.if_else(big, pa.scalar(None, data.type), data)
    text = data.cast(t.STRING)
    exact = text.cast(pa.decimal256(76, 36)) if not pc.any(pc.match_substring(text, "e-")).as_py() else None
    if (
        exact is None
    ):  # tiny numbers: Arrow prints exponents it will not read into a fixed scale; round them first
        rounded = pc.round(data, 37)
        exact = rounded.cast(t.STRING).cast(pa.decimal256(76, 36))
    return dk.fit(exact, context)


@cast_rule("boolean", "integral")
def _bool_int(vector: Vector, context: CallContext) -> Data:
    return vector.data.cast(context.dtype)


@cast_rule("boolean", "fractional")
def _bool_float(vector: Vector, context: CallContext) -> Data:
    return vector.data.cast(t.INT).cast(context.dtype)


@cast_rule("boolean", "decimal")
def _bool_decimal(vector: Vector, context: CallContext) -> Data:
    return dk.rescale(vector.data.cast(t.LONG), 0, context)


@cast_rule("integral", "boolean")
def _int_bool(vector: Vector, context: CallContext) -> Data:
    return pc.not_equal(vector.data, pa.scalar(0, vector.data.type))


@cast_rule("fractional", "boolean")
def _float_bool(vector: Vector, context: CallContext) -> Data:
    return pc.not_equal(vector.data, pa.scalar(0, vector.data.type))


@cast_rule("decimal", "boolean")
def _decimal_bool(vector: Vector, context: CallContext) -> Data:
    if vector.is_narrow:
        return pc.not_equal(vector.data, 0)
    return pc.not_equal(vector.data, pa.scalar(0).cast(vector.data.type))
