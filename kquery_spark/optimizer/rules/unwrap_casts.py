"""Removes widening casts from comparisons with literals, so that the column itself is compared."""

from __future__ import annotations

from dataclasses import replace
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from kquery_spark.expr import Call, Cast, Expr, InList, Literal, transform
from kquery_spark.logical import LogicalPlan, transform_plan
from kquery_spark.logical.plan import rewrite_expressions
from kquery_spark.types import names as t

_EXACT = Context(prec=80)  # the default precision of 28 digits would round longer decimals


def unwrap_casts(plan: LogicalPlan) -> LogicalPlan:
    """Turn ``CAST(#a AS bigint) = 5`` into ``#a = 5`` for an int column, so that row groups can be pruned by statistics.

    The cast must be lossless and preserve the order, and the narrow type must hold the literal exactly: for an int column, a
    comparison with 3,000,000,000 is not changed. Also, ``CAST(CAST(#a AS float) AS double)`` of an integer becomes
    ``CAST(#a AS double)``. This changes values, because it skips the rounding to float, but Spark's SimplifyCasts does it.
    """
    return transform_plan(plan, lambda node: rewrite_expressions(node, lambda e: transform(e, _unwrap)))


def _unwrap(expr: Expr) -> Expr:
    # A cast to the same type does nothing.
    if isinstance(expr, Cast) and expr.child.dtype == expr.to:
        return expr.child
    if (
        isinstance(expr, Cast)
        and isinstance(expr.child, Cast)
        and _is_double_via_float_cast(expr, expr.child)
    ):
        return replace(expr, child=expr.child.child)
    if isinstance(expr, InList):
        return _unwrap_in_list(expr)
    if not (isinstance(expr, Call) and expr.entry.is_comparison):
        return expr
    left, right = expr.args
    if isinstance(right, Literal):
        sides = _narrow_sides(left, right)
    elif isinstance(left, Literal):
        sides = _narrow_sides(right, left)[::-1]
    else:
        return expr
    return Call.of(expr.function, *sides, mode=expr.mode, tz=expr.tz) if sides else expr


def _is_double_via_float_cast(outer: Cast, inner: Cast) -> bool:
    return outer.to == t.DOUBLE and inner.to == t.FLOAT and bool(pa.types.is_integer(inner.child.dtype))


def _narrow_sides(cast: Expr, literal: Literal) -> tuple[Expr, ...]:
    """Return the operand of a lossless cast, and the literal in the operand's type; an empty tuple if that is impossible."""
    if not isinstance(cast, Cast) or not _is_lossless(cast.child.dtype, cast.to):
        return ()
    value = _narrow(literal, cast.child.dtype)
    return () if value is None else (cast.child, value)


def _unwrap_in_list(expr: InList) -> Expr:
    cast = expr.child
    if not isinstance(cast, Cast) or not _is_lossless(cast.child.dtype, cast.to):
        return expr
    values = [
        Literal(None, cast.child.dtype) if v.value is None else _narrow(v, cast.child.dtype)
        for v in expr.values
    ]
    if any(v is None for v in values):
        return expr
    return InList(cast.child, tuple(v for v in values if v is not None))


def _is_lossless(source: pa.DataType, target: pa.DataType) -> bool:
    """True if ``target`` holds every value of ``source`` exactly, in the same order."""
    if t.is_integral(source) and t.is_integral(target):
        return bool(source.bit_width <= target.bit_width)
    if t.is_decimal(target):
        digits = target.precision - target.scale
        if t.is_integral(source):
            # The number of decimal digits of the largest integer of each width: 127, 32767, ...
            return bool(digits >= {8: 3, 16: 5, 32: 10, 64: 19}[source.bit_width])
        if t.is_decimal(source):
            return bool(target.scale >= source.scale and digits >= source.precision - source.scale)
    return False


def _narrow(literal: Literal, dtype: pa.DataType) -> Literal | None:
    """Return the literal in the type of the column; None if the type does not hold its value exactly."""
    value: Any = literal.value
    if value is None:
        return None
    if t.is_integral(dtype):
        if value != int(value) or not -(2 ** (dtype.bit_width - 1)) <= int(value) < 2 ** (
            dtype.bit_width - 1
        ):
            return None
        return Literal(int(value), dtype)
    # For decimal(5, 2), 1.250 becomes 125 and fits, but 1.255 (125.5) and 1000 (100000) do not.
    number = Decimal(value)
    scaled = number.scaleb(dtype.scale, _EXACT)
    if scaled != scaled.to_integral_value() or scaled.copy_abs() >= 10**dtype.precision:
        return None
    return Literal(scaled.to_integral_value().scaleb(-dtype.scale, _EXACT), dtype)
