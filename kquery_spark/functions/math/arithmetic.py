"""Arithmetic: ``+ - * / % div pmod``, with Spark's ANSI, try and legacy behavior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import PlanError
from kquery_spark.functions.call_form import ONE_COLUMN, TWO_COLUMNS, CallForm
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.math.integral_division import integral_divide, pmod, remainder, zeros_to_null
from kquery_spark.functions.math.overflow import (
    checked_intervals,
    divide_by_zero,
    interval_overflow,
    overflow,
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


def _divide(args: Sequence[Vector], context: CallContext) -> Data:
    left, right = args
    right = zeros_to_null(left, right, context, divide_by_zero())
    if t.is_decimal(context.dtype):
        return dk.divide(left, right, context)
    return pc.divide(left.data, right.data)


def _integral_result(types: Sequence[pa.DataType]) -> pa.DataType:
    left, right = types
    if (left == right == t.LONG) or (t.is_decimal(left) and t.is_decimal(right)):
        return t.LONG
    raise PlanError(f"cannot div {t.spark_name(left)} by {t.spark_name(right)}")


def _coerce_integral(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    left, right = coerce_binary(types)
    return [left, right] if t.is_decimal(left) or t.is_fractional(left) else [t.LONG, t.LONG]


def _never_overflows(types: Sequence[pa.DataType], values: Sequence[object], mode: EvalMode) -> bool:
    """True for floats, and for decimals whose results have at most 38 digits, so that their type holds every value.

    A product has one digit more than both factors together, and a sum has no more digits than a product.
    """
    if t.is_decimal(types[0]):
        return bool(sum(dtype.precision for dtype in types) < decimals.MAX_PRECISION)
    return t.is_fractional(types[0])


def _by_nonzero(types: Sequence[pa.DataType], values: Sequence[object], mode: EvalMode) -> bool:
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
        integral_divide,
        _integral_result,
        _coerce_integral,
        calls=CallForm(shape=(2, "({0} div {1})")),
    ),
    _division("mod", "%", "Remainder", remainder, _result("remainder")),
    _division("pmod", "", "Pmod", pmod, _result("pmod"), calls=TWO_COLUMNS),
)
