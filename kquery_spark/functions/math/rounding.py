"""ROUND, BROUND, CEIL and FLOOR: on the decimal a number is written as, never on its binary expansion."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import ONE_COLUMN, UPPER, CallForm
from kquery_spark.functions.casts.floats import CONTEXT, exact_decimal, round_scaled
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.math.overflow import overflow
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    COLUMN,
    CallContext,
    EvalMode,
    Function,
    Nullability,
    VersionChange,
    depends_on_values,
    register,
)
from kquery_spark.types import decimals
from kquery_spark.types import names as t
from kquery_spark.types.units import INT64_MAX
from kquery_spark.types.vector import Data, Vector

# Decimals are rounded to powers of ten with at most this number of zeros; for much larger ones Spark raises an error.
_MOST_ZEROS = 1000
# Smaller scales of decimals are replaced by this one, at which all of their 38 digits are already rounded away.
_COARSEST = -40
_MAX_DECIMAL_PLACES = (
    340  # all digits of a double lie within this number of places before and after the point
)


def _decimal_type(dtype: pa.DataType, scale: int) -> pa.DataType:
    """The decimal ``round(decimal, scale)`` has."""
    whole = dtype.precision - dtype.scale + 1
    if scale < 0:
        return t.decimal(min(38, max(whole, -scale + 1)), 0)
    result_scale = min(dtype.scale, scale)
    return t.decimal(min(38, whole + result_scale), result_scale)


def _type(types: Sequence[pa.DataType], values: Sequence[object]) -> pa.DataType:
    if not t.is_numeric(types[0]):
        raise PlanError(f"cannot round {t.spark_name(types[0])}")
    scale = values[1] if len(values) > 1 else 0
    if scale is COLUMN:
        raise Unsupported("the scale of ROUND must be a literal")
    if not t.is_decimal(types[0]):
        return types[0]
    if not isinstance(scale, int):
        raise Unsupported("ROUND with a NULL scale is not supported")
    if scale < -_MOST_ZEROS:
        raise Unsupported(f"decimals are not rounded to powers of ten with more than {_MOST_ZEROS} zeros")
    return _decimal_type(types[0], scale)


def _integers(data: Any, scale: int, even: bool, context: CallContext) -> Data:
    if scale >= 0:
        return data
    bits = context.dtype.bit_width
    if scale < (-19 if bits == 64 else -10):
        return pc.multiply(data, pa.scalar(0, data.type))
    values = (
        data.to_numpy(zero_copy_only=False)
        if not data.null_count
        else data.fill_null(0).to_numpy(zero_copy_only=False)
    )
    wide = values.astype(object) if bits == 64 else values.astype(np.int64)
    unit = 10**-scale
    size = np.abs(wide)
    whole, rest = size // unit, size % unit
    up = (2 * rest > unit) | ((2 * rest == unit) & ((whole % 2 == 1) | (not even)))
    rounded = (whole + up) * unit
    rounded = np.where(wide < 0, -rounded, rounded)
    limit = 2 ** (bits - 1)
    outside = (rounded < -limit) | (rounded >= limit)
    if outside.any():
        if context.mode is EvalMode.ANSI:
            raise overflow(context.dtype)
        rounded = (rounded + limit) % (2 * limit) - limit
    mask = np.asarray(data.is_null().to_numpy(zero_copy_only=False)) if data.null_count else None
    return pa.array(rounded.astype(f"int{bits}"), context.dtype, mask=mask)


def _floats(data: Any, scale: int, even: bool, context: CallContext) -> Data:
    values = data.cast(t.DOUBLE).to_numpy(zero_copy_only=False)
    scale = max(-_MAX_DECIMAL_PLACES, min(scale, _MAX_DECIMAL_PLACES))
    with np.errstate(all="ignore"):
        scaled, certain = round_scaled(values, scale)
        power = np.float64(10.0) ** abs(scale)
        result = (scaled / power if scale >= 0 else scaled * power) + 0.0
    if abs(scale) > 22:
        certain = np.zeros(len(values), np.bool_)
    as_is = ~np.isfinite(values) | ((np.abs(values) >= 2.0**53) & (scale >= 0))
    result = np.where(as_is, values, result)
    slow = np.flatnonzero(~certain & ~as_is)
    if len(slow):
        mode = decimal.ROUND_HALF_EVEN if even else decimal.ROUND_HALF_UP
        unit = decimal.Decimal(1).scaleb(-scale, CONTEXT)
        distinct, inverse = np.unique(values[slow], return_inverse=True)
        exact = [float(exact_decimal(v).quantize(unit, mode, CONTEXT)) + 0.0 for v in distinct.tolist()]
        result[slow] = np.array(exact)[inverse]
    mask = np.asarray(data.is_null().to_numpy(zero_copy_only=False)) if data.null_count else None
    return pa.array(result.astype(np.float32) if context.dtype == t.FLOAT else result, mask=mask)


def _decimals(vector: Vector, scale: int, even: bool, context: CallContext) -> Data:
    source, scale = vector.dtype, max(scale, _COARSEST)
    if scale >= 0 and (scale >= source.scale or not even):
        if vector.is_narrow:
            return dk.rescale(vector.data, source.scale, context)
        return dk.to_wide(vector, context)
    values, present = dk.present_integers(vector, context.num_rows)
    unit = 10 ** (source.scale - scale)
    size = np.abs(values)
    whole, rest = (size // unit, size % unit) if len(values) else (size, size)
    up = (2 * rest > unit) | ((2 * rest == unit) & ((whole % 2 == 1) | (not even)))
    rounded = (whole + up.astype(object)) * 10 ** max(-scale, 0)
    # for negative scales, Spark raises overflow errors in every mode
    strict = replace(context, mode=EvalMode.ANSI) if scale < 0 else context
    return dk.decimals_from_unscaled(np.where(values < 0, -rounded, rounded), present, strict)


def _rounding_kernel(even: bool) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        vector = args[0]
        if len(args) > 1 and not args[1].data.is_valid:
            return pa.nulls(context.num_rows, context.dtype)
        scale = args[1].data.as_py() if len(args) > 1 else 0
        if t.is_decimal(context.dtype):
            try:
                return _decimals(vector.filled(context.num_rows), scale, even, context)
            except ExecutionError as error:
                raise ExecutionError("NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION", str(error)) from None
        array = vector.array(context.num_rows)
        kernel = _floats if t.is_fractional(context.dtype) else _integers
        return kernel(array, scale, even, context)

    return run


# --- CEIL and FLOOR -------------------------------------------------------------------------------


def _whole_type(types: Sequence[pa.DataType], values: Sequence[object]) -> pa.DataType:
    if len(types) > 1:
        if not t.is_decimal(types[0]):
            raise PlanError(f"cannot round {t.spark_name(types[0])} up or down to a scale")
        return _type(types, values)
    (dtype,) = types
    if t.is_decimal(dtype):
        whole = dtype.precision - dtype.scale + (1 if dtype.scale else 0)
        return t.decimal(min(38, whole), 0)
    if dtype in (t.LONG, t.DOUBLE):
        return t.LONG
    raise PlanError(f"cannot take the ceiling or floor of {t.spark_name(dtype)}")


def _coerce_whole(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    if len(types) > 1:
        return [decimals.for_number(types[0]), t.INT]
    (dtype,) = types
    return [dtype if t.is_decimal(dtype) else t.LONG if t.is_integral(dtype) else t.DOUBLE]


def _has_room(data: Data, unit: int) -> bool:
    """True if the multiples of ``unit`` next to the values fit int64, as the values do."""
    return unit == 0 or dk.magnitude(data) + unit <= INT64_MAX


def _to_scale(args: Sequence[Vector], up: bool, context: CallContext) -> Data:
    """Round a decimal up or down to the number of decimal places in the second argument."""
    vector, scale = args[0], max(args[1].data.as_py(), _COARSEST)
    source = vector.dtype
    vector = Vector(source, vector.physical(context.num_rows))
    if scale >= source.scale:
        if vector.is_narrow:
            return dk.rescale(vector.data, source.scale, context)
        return dk.to_wide(vector, context)
    unit, tens = 10 ** (source.scale - scale), 10 ** max(-scale, 0)
    try:
        if vector.is_narrow and unit < 10**18 and _has_room(vector.data, unit if scale < 0 else 0):
            raw = np.asarray(dk.as_int64(vector.data))
            whole = (-(-raw // unit) if up else raw // unit) * tens
            mask = pc.is_null(vector.data) if vector.data.null_count else None
            return dk.check_range(dk.with_nulls(whole, mask), context)
        values, present = dk.present_integers(vector, context.num_rows)
        whole = (-(-values // unit) if up else values // unit) * tens
        # for negative scales, Spark raises overflow errors in every mode
        return dk.decimals_from_unscaled(
            whole, present, replace(context, mode=EvalMode.ANSI) if scale < 0 else context
        )
    except ExecutionError as error:
        raise ExecutionError("NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION", str(error)) from None


def _whole_kernel(up: bool) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        if len(args) > 1:
            return _to_scale(args, up, context)
        (vector,) = args
        if vector.dtype == t.LONG:
            return vector.data
        if t.is_decimal(vector.dtype):
            return _whole_decimal(vector.filled(context.num_rows), up, context)
        data = vector.array(context.num_rows)
        values = (np.ceil if up else np.floor)(data.to_numpy(zero_copy_only=False))
        mask = np.asarray(data.is_null().to_numpy(zero_copy_only=False))
        inside = (values >= -(2.0**63)) & (values < 2.0**63)
        if context.mode is EvalMode.ANSI and (~inside & ~mask & ~np.isnan(values)).any():
            raise overflow(t.LONG)
        with np.errstate(invalid="ignore"):
            exact = np.where(inside, values, 0).astype(np.int64)
        exact = np.where(values >= 2.0**63, 2**63 - 1, np.where(values <= -(2.0**63), -(2**63), exact))
        return pa.array(exact, mask=mask)

    return run


def _whole_decimal(vector: Vector, up: bool, context: CallContext) -> Data:
    scale = vector.dtype.scale
    if vector.is_narrow and scale <= 18:
        raw = np.asarray(dk.as_int64(vector.data))
        whole = -(-raw // 10**scale) if up else raw // 10**scale
        return dk.with_nulls(whole, pc.is_null(vector.data) if vector.data.null_count else None)
    values, present = dk.present_integers(vector, context.num_rows)
    return dk.decimals_from_unscaled(-(-values // 10**scale) if up else values // 10**scale, present, context)


def _coerce_round(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    first = types[0] if t.is_numeric(types[0]) else t.DOUBLE
    return [first, t.INT][: len(types)]


def _cannot_overflow(types: Sequence[pa.DataType], values: Sequence[object], mode: EvalMode) -> bool:
    return t.is_fractional(types[0]) or (t.is_decimal(types[0]) and types[0].precision < 38)


def _round_entry(name: str, even: bool, catalyst: str) -> Function:
    # Catalyst: children (child, scale literal); ansiEnabled is the mode
    return Function(
        name,
        _rounding_kernel(even),
        depends_on_values,
        catalyst=(catalyst,),
        arity=(1, 2),
        nullable=Nullability.OTHER_REASONS,
        raises=ALWAYS_RAISES,
        safe_for=_cannot_overflow,
        encoded=True,
        coerce=_coerce_round,
        result_of=_type,
        calls=CallForm(adds=(1, ", 0")),
    )


def _whole_entry(name: str, up: bool, catalyst: str, aliases: tuple[str, ...] = ()) -> Function:
    return Function(
        name,
        _whole_kernel(up),
        depends_on_values,
        catalyst=(catalyst, f"Round{catalyst}"),
        arity=(1, 2),
        nullable=Nullability.OTHER_REASONS,
        raises=ALWAYS_RAISES,
        safe_for=lambda types, values, mode: (
            types[0] != t.DOUBLE and (len(types) < 2 or _cannot_overflow(types, values, mode))
        ),
        encoded=True,
        coerce=_coerce_whole,
        result_of=_whole_type,
        calls=replace(UPPER, shape=(2, f"{name}({{0}}, {{1}})")),
        changes=(
            VersionChange(
                "saturates doubles beyond the range of bigint", lambda types, _: types[0] == t.DOUBLE
            ),
        ),
        aliases=aliases,
        alias_calls=tuple((alias, ONE_COLUMN) for alias in aliases),
    )


register(
    _round_entry("round", False, "Round"),
    _round_entry("bround", True, "BRound"),
    # children of Ceil are double, bigint or decimal, those of RoundCeil a decimal and a literal
    _whole_entry("ceil", True, "Ceil", ("ceiling",)),
    _whole_entry("floor", False, "Floor"),
)
