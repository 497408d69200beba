"""Arithmetic: ``+ - * / % div pmod``, with Spark's ANSI, try and legacy behavior."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, PlanError
from kquery_spark.functions.call_form import ONE_COLUMN, TWO_COLUMNS, CallForm
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.math.overflow import (
    checked_intervals,
    divide_by_zero,
    interval_overflow,
    overflow,
    remainder_by_zero,
)
from kquery_spark.functions.registry import (
    ANSI_RAISES,
    CallContext,
    EvalMode,
    Function,
    Nullability,
    Operator,
    register,
    register_internal,
)
from kquery_spark.types import decimals
from kquery_spark.types import names as t
from kquery_spark.types.coercion import common_type
from kquery_spark.types.units import INT64_MAX
from kquery_spark.types.vector import Data, Vector


def _decimal_result(op: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Type of ``left op right`` for two decimals, with Spark's default ``allowPrecisionLoss``.

    ``op`` is one of ``add``, ``subtract``, ``multiply``, ``divide``, ``remainder``, ``pmod``.
    """
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    scale = max(s1, s2)
    match op:
        case "add" | "subtract":
            return decimals.adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "multiply":
            return decimals.adjusted(p1 + p2 + 1, s1 + s2)
        case "divide":
            scale = max(decimals.MIN_ADJUSTED_SCALE, s1 + p2 + 1)
            return decimals.adjusted(p1 - s1 + s2 + scale, scale)
        case _:
            return decimals.adjusted(min(p1 - s1, p2 - s2) + scale, scale)


def _result(op: str) -> Callable[[Sequence[pa.DataType]], pa.DataType]:
    def rule(types: Sequence[pa.DataType]) -> pa.DataType:
        left, right = types
        if t.is_decimal(left) and t.is_decimal(right):
            return _decimal_result(op, left, right)
        if left != right:
            raise PlanError(f"cannot {op} {t.spark_name(left)} and {t.spark_name(right)}")
        if t.is_interval(left) and op in ("add", "subtract"):
            return left
        if not t.is_numeric(left):
            raise PlanError(f"cannot {op} values of type {t.spark_name(left)}")
        return left

    return rule


def coerce_binary(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    """Operands of arithmetic: decimals keep their own precision, everything else is cast to a common type."""
    left, right = types
    if t.is_decimal(left) and t.is_decimal(right):
        return types
    for a, b, swap in ((left, right, False), (right, left, True)):
        if t.is_decimal(a) and t.is_integral(b):
            pair = [a, decimals.for_integral(b)]
            return pair[::-1] if swap else pair
    common = common_type(left, right)
    if common in (t.NULL, t.STRING):
        common = t.DOUBLE
    return types if common is None else [common, common]


def _coerce_divide(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    left, right = coerce_binary(types)
    if t.is_decimal(left) and t.is_decimal(right):
        return [left, right]
    return [t.DOUBLE, t.DOUBLE] if t.is_numeric(left) and t.is_numeric(right) else [left, right]


def _divide_result(types: Sequence[pa.DataType]) -> pa.DataType:
    left, right = types
    if t.is_decimal(left) and t.is_decimal(right):
        return _decimal_result("divide", left, right)
    if left == right == t.DOUBLE:
        return t.DOUBLE
    raise PlanError(f"cannot divide {t.spark_name(left)} by {t.spark_name(right)}")


def _int_op(
    checked: Callable[[Any, Any], Any], wrapping: Callable[[Any, Any], Any]
) -> Callable[[Vector, Vector, CallContext], Data]:
    def run(left: Vector, right: Vector, context: CallContext) -> Data:
        if t.is_interval(context.dtype):
            return checked_intervals(checked, (left, right), context, interval_overflow("WITH_SUGGESTION"))
        if not t.is_integral(context.dtype) or context.mode is EvalMode.LEGACY:
            return wrapping(left.data, right.data)
        try:
            return checked(left.data, right.data)
        except pa.ArrowInvalid:
            if context.mode is EvalMode.ANSI:
                raise overflow(context.dtype, binary=True) from None
        return _try_int(wrapping, left, right, context)

    return run


def _try_int(
    wrapping: Callable[[Any, Any], Any],
    left: Vector,
    right: Vector,
    context: CallContext,
) -> Data:
    """Make rows that overflow NULL: those whose wrapped result differs from the exact one, computed in decimal256."""
    a, b = left.array(context.num_rows), right.array(context.num_rows)
    wrapped = wrapping(a, b)
    wide = wrapping(a.cast(pa.decimal256(19, 0)), b.cast(pa.decimal256(19, 0)))
    same_value = pc.equal(wrapped.cast(pa.decimal128(19, 0)).cast(wide.type), wide)
    return pc.if_else(same_value, wrapped, pa.scalar(None, wrapped.type))


_ADD = _int_op(pc.add_checked, pc.add)
_SUBTRACT = _int_op(pc.subtract_checked, pc.subtract)
_MULTIPLY = _int_op(pc.multiply_checked, pc.multiply)


def _add(args: Sequence[Vector], context: CallContext) -> Data:
    if t.is_decimal(context.dtype):
        return dk.add(args[0], args[1], context)
    return _ADD(args[0], args[1], context)


def _subtract(args: Sequence[Vector], context: CallContext) -> Data:
    if t.is_decimal(context.dtype):
        return dk.add(args[0], args[1], context, -1)
    return _SUBTRACT(args[0], args[1], context)


def _multiply(args: Sequence[Vector], context: CallContext) -> Data:
    if t.is_decimal(context.dtype):
        return dk.multiply(args[0], args[1], context)
    return _MULTIPLY(args[0], args[1], context)


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


def _divide(args: Sequence[Vector], context: CallContext) -> Data:
    left, right = args
    right = zeros_to_null(left, right, context, divide_by_zero())
    if t.is_decimal(context.dtype):
        return dk.divide(left, right, context)
    return pc.divide(left.data, right.data)


def _integer_operands(left: Vector, right: Vector, context: CallContext) -> tuple[Any, Any, Any]:
    """Dividend, divisor (never 0) and NULL mask as numpy arrays of a common integer form."""
    n = context.num_rows
    mask = dk.either_null(left.data, right.data, n)
    a, b = left.physical(n), right.physical(n)
    fill_a, fill_b = pa.scalar(0, a.type), pa.scalar(1, b.type)
    an = (a.fill_null(fill_a) if a.null_count else a).to_numpy(zero_copy_only=False)
    bn = (b.fill_null(fill_b) if b.null_count else b).to_numpy(zero_copy_only=False)
    return an, bn, None if mask is None else mask.to_numpy(zero_copy_only=False)


def _same_scale(left: Vector, right: Vector) -> tuple[Vector, Vector] | None:
    """Two narrow decimals at their larger scale, or None when they are not both narrow there."""
    scale = max(left.dtype.scale, right.dtype.scale)
    sides = []
    for side in (left, right):
        factor = 10 ** (scale - side.dtype.scale)
        if not side.is_narrow or factor > INT64_MAX or dk.magnitude(side.data) * factor > INT64_MAX:
            return None
        sides.append(Vector(pa.decimal128(38, scale), dk._scaled(side.data, factor)))
    return sides[0], sides[1]


def _big_pair(left: Vector, right: Vector, length: int) -> tuple[Any, Any, Any]:
    """Return the unscaled Python integers of both sides at the larger scale, and the mask of rows without a NULL.

    The integers are those of the rows in the mask only.
    """
    scale = max(left.dtype.scale, right.dtype.scale)
    a, b = dk._unscaled(left, length), dk._unscaled(right, length)
    present = np.array([x is not None and y is not None for x, y in zip(a, b, strict=True)], np.bool_)
    return (
        a[present] * 10 ** (scale - left.dtype.scale),
        b[present] * 10 ** (scale - right.dtype.scale),
        present,
    )


def _remainder(args: Sequence[Vector], context: CallContext) -> Data:
    return _modulo(args, context, positive=False)


def _pmod(args: Sequence[Vector], context: CallContext) -> Data:
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
        rest = np.fmod(a, np.where(b == -1, 1, b)) if a.dtype.kind == "i" else np.fmod(a, b)
        if positive and t.is_decimal(out):
            # For a negative divisor, the result is the remainder itself, and rest + b could exceed int64.
            rest = np.where((rest < 0) & (b > 0), rest + b, rest)
        elif positive:  # rest + b of integers may wrap around, as in Java
            rest = np.where(rest < 0, np.fmod(rest + b, b), rest)
    result = pa.array(rest.astype(form), mask=mask)
    if t.is_decimal(out):
        return dk.rescale(result, left.dtype.scale, context)
    return result


def _modulo_wide(left: Vector, right: Vector, context: CallContext, positive: bool) -> Data:
    """Past 18 digits: exact Python integers in object arrays (rare)."""
    a, b, present = _big_pair(left, right, context.num_rows)
    quotients = np.abs(a) // np.abs(b) if len(a) else a
    if any(len(str(q).rstrip("0")) > 39 for q in quotients[quotients >= 10**39]):
        # Spark divides with 39 digits, and Java's remainder gives up on a longer quotient, in every mode
        raise ExecutionError(
            "NUMERIC_VALUE_OUT_OF_RANGE", "Division impossible: the quotient has too many digits."
        )
    size = np.abs(a) % np.abs(b) if len(a) else a
    rest = np.where(a < 0, -size, size) if len(a) else a
    if positive and len(a):
        size2 = np.abs(rest + b) % np.abs(b)
        rest = np.where(rest < 0, np.where(rest + b < 0, -size2, size2), rest)
    scale, out = max(left.dtype.scale, right.dtype.scale), context.dtype
    if out.scale < scale and len(a):
        rest = dk.divide_half_up(rest, np.full(len(rest), 10 ** (scale - out.scale), object))
    return dk.decimals_from_unscaled(rest * 10 ** max(out.scale - scale, 0), present, context)


def _integral_divide(args: Sequence[Vector], context: CallContext) -> Data:
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
    # Spark takes the low 64 bits without looking at the rest, in every mode
    wrapped = (values + 2**63) % 2**64 - 2**63
    quotients: list[int | None] = [None] * n
    for row, value in zip(np.flatnonzero(present), wrapped, strict=True):
        quotients[row] = int(value)
    return pa.array(quotients, t.LONG)


def _integral_result(types: Sequence[pa.DataType]) -> pa.DataType:
    left, right = types
    if (left == right == t.LONG) or (t.is_decimal(left) and t.is_decimal(right)):
        return t.LONG
    raise PlanError(f"cannot div {t.spark_name(left)} by {t.spark_name(right)}")


def _coerce_integral(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    left, right = coerce_binary(types)
    return [left, right] if t.is_decimal(left) or t.is_fractional(left) else [t.LONG, t.LONG]


def _never_overflows(types: Sequence[pa.DataType], values: Sequence[object]) -> bool:
    """True for floats, and for decimals of up to 16 digits, whose results (up to 33 digits) always fit their type."""
    if t.is_decimal(types[0]):
        return all(dtype.precision <= 16 for dtype in types)
    return t.is_fractional(types[0])


def _by_nonzero(types: Sequence[pa.DataType], values: Sequence[object]) -> bool:
    """True for a literal divisor other than 0, unless an operand is a decimal, whose result may not fit its type."""
    return isinstance(values[1], int | float) and values[1] != 0 and not any(map(t.is_decimal, types))


_SAFE = {"divide": _by_nonzero, "mod": _by_nonzero, "pmod": _by_nonzero} | dict.fromkeys(
    ("add", "subtract", "multiply"), _never_overflows
)


def _entry(
    name: str,
    symbol: str,
    catalyst: str,
    kernel: Any,
    result: Any,
    coerce: Any = coerce_binary,
    associative: bool = False,
) -> Function:
    return Function(
        name,
        kernel,
        result,
        catalyst=(catalyst,),
        arity=(2, 2),
        nullable=Nullability.ANY_ARGUMENT,
        raises=ANSI_RAISES,
        safe_for=_SAFE.get(name),
        encoded=True,
        coerce=coerce,
        operator=Operator(symbol, arithmetic=True, associative=associative),
    )


def _division(*args: Any, calls: CallForm = ONE_COLUMN) -> Function:
    """Build the entry of a division. If the divisor is NULL (or 0, outside of ANSI mode), Spark skips the dividend."""
    return replace(
        _entry(*args), calls=calls, nullable=Nullability.OTHER_REASONS, evaluates=(1, 0), stops_at_zero=True
    )


register_internal(
    _entry("add", "+", "Add", _add, _result("add"), associative=True),
    _entry("subtract", "-", "Subtract", _subtract, _result("subtract")),
    _entry("multiply", "*", "Multiply", _multiply, _result("multiply"), associative=True),
    _division("divide", "/", "Divide", _divide, _divide_result, _coerce_divide),
)

register(
    _division(
        "div",
        "div",
        "IntegralDivide",
        _integral_divide,
        _integral_result,
        _coerce_integral,
        calls=CallForm(shape=(2, "({0} div {1})")),
    ),
    _division("mod", "%", "Remainder", _remainder, _result("remainder")),
    _division("pmod", "", "Pmod", _pmod, _result("pmod"), calls=TWO_COLUMNS),
)
