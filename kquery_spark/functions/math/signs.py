"""Unary minus and abs, with Spark's ANSI and legacy behavior."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, PlanError
from kquery_spark.functions.math.overflow import checked_intervals, interval_overflow, overflow
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    CallContext,
    EvalMode,
    Function,
    Operator,
    VersionChange,
    first_argument_type,
    register,
)
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector


def _is_checked(context: CallContext) -> bool:
    """Return whether the smallest integer, which has no counterpart, is an error."""
    return t.is_integral(context.dtype) and context.mode is not EvalMode.LEGACY


def _checked(kernel: Callable[[Data], Data], child: Vector, context: CallContext) -> Data:
    try:
        return kernel(child.data)
    except pa.ArrowInvalid:
        raise overflow(context.dtype) from None


def _negative(args: Sequence[Vector], context: CallContext) -> Data:
    (child,) = args
    if _is_checked(context):
        return _checked(pc.negate_checked, child, context)
    if t.is_interval(context.dtype):
        return checked_intervals(pc.negate_checked, args, context, interval_overflow("WITHOUT_SUGGESTION"))
    if t.is_decimal(context.dtype):
        return _sign_change(child, context, negate=True)
    return pc.negate(child.data)


_JAVA_DIGITS = 34  # of MathContext.DECIMAL128, to which Scala's BigDecimal rounds when a sign changes
_JAVA = decimal.Context(prec=_JAVA_DIGITS, rounding=decimal.ROUND_HALF_EVEN)
_EXACT = decimal.Context(prec=60)


def _sign_change(vector: Vector, context: CallContext, negate: bool) -> Data:
    if vector.is_narrow:
        return (pc.negate if negate else pc.abs)(vector.data)
    data = vector.array(1 if vector.is_scalar else context.num_rows)
    unit = decimal.Decimal(1).scaleb(-context.dtype.scale)
    values = [
        v if v is None or not (negate or v < 0) else _JAVA.minus(v).quantize(unit, context=_EXACT)
        for v in data.to_pylist()
    ]
    _check_digits(values, context.dtype)
    array = pa.array(values, context.dtype)
    return array[0] if vector.is_scalar else array


def _check_digits(values: Sequence[decimal.Decimal | None], dtype: pa.DataType) -> None:
    if any(v is not None and v.adjusted() + dtype.scale >= dtype.precision for v in values):
        raise ExecutionError(
            "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION",
            "The rounded value has more digits than its type.",
        )


def _abs(args: Sequence[Vector], context: CallContext) -> Data:
    (child,) = args
    if _is_checked(context):
        return _checked(pc.abs_checked, child, context)
    if t.is_interval(context.dtype):
        return checked_intervals(pc.abs_checked, args, context, overflow(context.dtype))
    if t.is_decimal(context.dtype):
        return _sign_change(child, context, negate=False)
    return pc.abs(child.data)


def _numeric_only(types: Sequence[pa.DataType]) -> pa.DataType:
    if not t.is_numeric(types[0]) and not t.is_interval(types[0]):
        raise PlanError(f"argument 1 cannot be {t.spark_name(types[0])}")
    return first_argument_type(types)


def _coerce_unary(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [t.DOUBLE] if types[0] in (t.STRING, t.NULL) else types


def _cannot_overflow(types: Sequence[pa.DataType], values: Sequence[object], mode: EvalMode) -> bool:
    """Return True for floats, for decimals that Java does not round to 34 digits, and in LEGACY mode for integers.

    Rounding a decimal could add a digit. In LEGACY mode, the negative of the smallest integer is this integer itself.
    """
    if t.is_decimal(types[0]):
        return bool(types[0].precision <= _JAVA_DIGITS)
    if t.is_integral(types[0]):
        return mode is EvalMode.LEGACY
    return not t.is_interval(types[0])


_ROUNDING_CHANGE = (
    VersionChange(
        "does not round a decimal to 34 digits",
        lambda types, _: pa.types.is_decimal(types[0]) and types[0].precision > _JAVA_DIGITS,
        since=(4, 0),
    ),
)

register(
    Function(
        "negative",
        _negative,
        _numeric_only,
        catalyst=("UnaryMinus",),
        raises=ALWAYS_RAISES,
        safe_for=_cannot_overflow,
        encoded=True,
        coerce=_coerce_unary,
        operator=Operator("-"),
        changes=_ROUNDING_CHANGE,
    ),
    Function(
        "abs",
        _abs,
        _numeric_only,
        catalyst=("Abs",),
        raises=ALWAYS_RAISES,
        safe_for=_cannot_overflow,
        encoded=True,
        coerce=_coerce_unary,
        changes=_ROUNDING_CHANGE,
    ),
)
