"""Literals as vectors and back, and expressions without columns evaluated to literals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr.nodes import Call, Case, Cast, Expr, InList, Literal
from kquery_spark.functions import casts
from kquery_spark.functions.calling import call
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.nullability import Nullability
from kquery_spark.functions.registry import Branching, CallContext, EvalMode, Function, function
from kquery_spark.functions.sql_form import Logic
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector

_recorded: ContextVar[list[Expr] | None] = ContextVar("recorded constant expressions", default=None)


def literal_vector(literal: Literal) -> Vector:
    """Return a literal as a scalar vector; a decimal has the narrow form if it fits."""
    dtype, value = literal.dtype, literal.value
    if value is None:
        return Vector(dtype, pa.scalar(None, pa.int64() if t.is_decimal(dtype) else dtype))
    if t.is_decimal(dtype):
        return Vector(dtype, dk.scalar_narrow(value, dtype))
    if pa.types.is_temporal(dtype):
        return Vector(dtype, pa.scalar(value, storage(dtype)).cast(dtype))
    return Vector(dtype, pa.scalar(value, dtype))


def storage(dtype: pa.DataType) -> pa.DataType:
    """Return the integer type that stores the values of a temporal type."""
    return pa.int32() if dtype == t.DATE else pa.int64()


def vector_literal(vector: Vector) -> Literal:
    """Return a scalar vector as a literal; raises Unsupported for nested dates that Python's calendar does not have."""
    scalar = vector.plain()
    if not scalar.is_valid:
        return Literal(None, vector.dtype)
    if pa.types.is_temporal(vector.dtype):
        return Literal(scalar.value, vector.dtype)
    try:
        return Literal(scalar.as_py(), vector.dtype)
    except (OverflowError, ValueError):
        raise Unsupported(
            f"a constant {t.spark_name(vector.dtype)} with a date or time outside of the years 1 to 9999 is not supported"
        ) from None


def evaluate_constant(expr: Expr) -> Literal:
    """Return the value of an expression that reads no columns; raises the error of the expression, if any."""
    recorded = _recorded.get()
    if recorded is not None:
        recorded.append(expr)
    return vector_literal(_evaluate(expr))


@contextmanager
def recorded_constants() -> Iterator[list[Expr]]:
    """Record the expressions that ``evaluate_constant`` evaluates in this block, which a plan shows only as values."""
    expressions: list[Expr] = []
    token = _recorded.set(expressions)
    try:
        yield expressions
    finally:
        _recorded.reset(token)


def check_constant(expr: Expr) -> None:
    """Raise the error, if any, of an expression that reads no columns; ``Literal`` need not support its type."""
    _evaluate(expr)


def _evaluate(expr: Expr) -> Vector:
    match expr:
        case Literal():
            return literal_vector(expr)
        case Call(logic=Logic.AND | Logic.OR, args=(left, right)):
            return _connective(expr, left, right)
        case Call(entry=Function(branching=Branching.FIRST_PRESENT)):
            return _coalesce(expr)
        case Call(entry=Function(branching=Branching.IF_NAN), args=(tested, otherwise)):
            value = _evaluate(tested)
            is_nan = value.data.is_valid and math.isnan(value.data.as_py())
            return _evaluate(otherwise) if is_nan else value
        case Call():
            return _call(expr)
        case Cast():
            return casts.cast(_evaluate(expr.child), expr.to, expr.mode, expr.tz, 1)
        case Case():
            return _case(expr)
        case InList():
            return _in_list(expr)
    raise Unsupported(f"{type(expr).__name__} expressions have no constant value")


def _call(expr: Call) -> Vector:
    """Evaluate a call. Spark does not evaluate the arguments after the first NULL, whose errors must not be raised.

    Outside of ANSI mode, it does not evaluate ``x`` in ``x / 0`` either. In both cases, the result is NULL, with one
    exception: a function with FIRST_TWO_ARGUMENTS whose third argument is NULL, such as the start of ``locate``. Then
    the arguments that were not evaluated become NULL, and the kernel computes the result.
    """
    entry, values = expr.entry, dict[int, Vector]()
    order = entry.evaluation_order(len(expr.args))
    stops_at_zero = entry.stops_at_zero and expr.mode is not EvalMode.ANSI
    for position in order:
        value = values[position] = _evaluate(expr.args[position])
        is_zero_divisor = stops_at_zero and position != order[-1] and value.data.as_py() == 0
        if is_zero_divisor or not value.data.is_valid:
            if entry.nullable is not Nullability.FIRST_TWO_ARGUMENTS or position < 2:
                return literal_vector(Literal(None, expr.dtype))
            values |= {i: literal_vector(Literal(None, expr.args[i].dtype)) for i in order if i not in values}
            break
    arguments = [values[i] if i in values else _evaluate(a) for i, a in enumerate(expr.args)]
    return call(entry, arguments, CallContext(expr.dtype, expr.mode, expr.tz, 1))


def _connective(expr: Call, left: Expr, right: Expr) -> Vector:
    """Evaluate AND or OR; if the left side decides the result, the right side is not evaluated."""
    first = _evaluate(left)
    if first.data.as_py() is (expr.logic is Logic.OR):
        return first
    return call(expr.entry, [first, _evaluate(right)], CallContext(t.BOOL, num_rows=1))


def _coalesce(expr: Call) -> Vector:
    values = (_evaluate(a) for a in expr.args)
    return next((v for v in values if v.data.is_valid), literal_vector(Literal(None, expr.dtype)))


def _case(expr: Case) -> Vector:
    for condition, value in expr.branches:
        if _evaluate(condition).data.as_py():
            return _evaluate(value)
    return _evaluate(Literal(None, expr.dtype) if expr.otherwise is None else expr.otherwise)


def _in_list(expr: InList) -> Vector:
    child = _evaluate(expr.child)
    context = CallContext(t.BOOL, num_rows=1)
    hits = [call(function("eq"), [child, literal_vector(v)], context).data.as_py() for v in expr.values]
    answer = True if True in hits else None if None in hits else False
    return Vector(t.BOOL, pa.scalar(answer, t.BOOL))
