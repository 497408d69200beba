"""Comparison with Spark's order: NaN equals NaN and is largest, -0.0 equals 0.0, strings compare as bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import PlanError
from kquery_spark.functions.call_form import TWO_COLUMNS, CallForm
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.registry import (
    CallContext,
    Function,
    Kernel,
    Nullability,
    Operator,
    register,
    register_internal,
)
from kquery_spark.functions.sql_form import Logic
from kquery_spark.kernels.ordered_bytes import can_order, ordered_bytes
from kquery_spark.types import names as t
from kquery_spark.types.coercion import common_type
from kquery_spark.types.units import INT64_MAX
from kquery_spark.types.vector import Data, Vector, gather

Compare = Callable[[Any, Any], Any]


def _boolean(types: Sequence[pa.DataType]) -> pa.DataType:
    left, right = types[0], types[-1]
    alike = t.nullable_within(left) == t.nullable_within(right)
    if not alike and not (t.is_decimal(left) and t.is_decimal(right)):
        raise PlanError(f"cannot compare {t.spark_name(left)} with {t.spark_name(right)}")
    return t.BOOL


def coerce_comparison(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    """Both sides at their common type (a string meets a number as the number)."""
    common: pa.DataType | None = types[0]
    for other in types[1:]:
        common = None if common is None else common_type(common, other)
    return types if common is None else [common] * len(types)


def comparable(left: Vector, right: Vector, context: CallContext) -> tuple[Data, Data]:
    """Both sides in one physical form that Arrow's comparisons order as the values are ordered."""
    if t.is_decimal(left.dtype):
        return _decimals(left, right, context)
    if t.is_nested(left.dtype):
        return _bytes(left), _bytes(right)
    if left.is_dictionary or right.is_dictionary:
        return left.plain(), right.plain()
    return left.data, right.data


def _bytes(vector: Vector) -> Data:
    coded = ordered_bytes(vector.array(1))
    return coded[0] if vector.is_scalar else coded


def _decimals(left: Vector, right: Vector, context: CallContext) -> tuple[Data, Data]:
    if left.is_narrow and right.is_narrow:
        scale = max(left.dtype.scale, right.dtype.scale)
        up_l, up_r = 10 ** (scale - left.dtype.scale), 10 ** (scale - right.dtype.scale)
        if (up_l == 1 or dk.magnitude(left.data) * up_l <= INT64_MAX) and (
            up_r == 1 or dk.magnitude(right.data) * up_r <= INT64_MAX
        ):
            return dk.scaled(left.data, up_l), dk.scaled(right.data, up_r)
    scale = max(left.dtype.scale, right.dtype.scale)
    wide = pa.decimal256(38 + scale, scale)
    return left.plain().cast(wide), right.plain().cast(wide)


def _any_nan(data: Data) -> bool:
    if isinstance(data, pa.Scalar):
        return bool(data.is_valid and data.as_py() != data.as_py())
    return bool(pc.any(pc.is_nan(data)).as_py())


def _equal(a: Data, b: Data) -> Data:
    result = pc.equal(a, b)
    if pa.types.is_floating(a.type) and _any_nan(a) and _any_nan(b):
        result = pc.or_kleene(result, pc.and_(pc.is_nan(a), pc.is_nan(b)))
    return result


def _less(a: Data, b: Data) -> Data:
    result = pc.less(a, b)
    if pa.types.is_floating(a.type) and _any_nan(b):
        result = pc.or_kleene(result, pc.and_(pc.invert(pc.is_nan(a)), pc.is_nan(b)))
    return result


def _less_equal(a: Data, b: Data) -> Data:
    result = pc.less_equal(a, b)
    if pa.types.is_floating(a.type) and _any_nan(b):
        result = pc.or_(result, pc.and_(pc.is_nan(b), pc.is_valid(a)))
    return result


_OPS: dict[str, Compare] = {
    "eq": _equal,
    "neq": lambda a, b: pc.invert(_equal(a, b)),
    "lt": _less,
    "lteq": _less_equal,
    "gt": lambda a, b: _less(b, a),
    "gteq": lambda a, b: _less_equal(b, a),
}


def _kernel(op: str) -> Callable[[Sequence[Vector], CallContext], Data]:
    test = _OPS[op]

    def run(args: Sequence[Vector], context: CallContext) -> Data:
        left, right = args
        for side, other, flip in ((left, right, False), (right, left, True)):
            if side.is_dictionary and other.is_scalar:
                values = side.data.dictionary
                hits = test(other.plain(), values) if flip else test(values, other.plain())
                return gather(hits, side.data.indices)
        a, b = comparable(left, right, context)
        return test(a, b)

    return run


def compare(op: str, left: Vector, right: Vector, context: CallContext) -> Data:
    """``eq``, ``lt``, ``lteq``, ``gt`` or ``gteq`` of two vectors of one type, for other kernels."""
    return _kernel(op)([left, right], context)


def _null_safe(args: Sequence[Vector], context: CallContext) -> Data:
    left, right = args
    if left.dtype == t.NULL:
        return (
            pa.scalar(True).cast(t.BOOL)
            if left.is_scalar and right.is_scalar
            else pa.repeat(True, context.num_rows)
        )
    same = pc.fill_null(_kernel("eq")(args, context), False)
    both = pc.and_(pc.is_null(left.data), pc.is_null(right.data))
    return pc.or_(same, both)


def _is_null(args: Sequence[Vector], context: CallContext) -> Data:
    return pc.is_null(args[0].data)


def _is_not_null(args: Sequence[Vector], context: CallContext) -> Data:
    return pc.is_valid(args[0].data)


def _is_nan(args: Sequence[Vector], context: CallContext) -> Data:
    return pc.fill_null(pc.is_nan(args[0].data), False)


def _boolean_if_comparable(types: Sequence[pa.DataType]) -> pa.DataType:
    if any(t.is_nested(dtype) and not can_order(dtype) for dtype in types):
        raise PlanError(f"comparing values of type {t.spark_name(types[0])} is not supported")
    return _boolean(types)


def _boolean_of_any_type(types: Sequence[pa.DataType]) -> pa.DataType:
    return t.BOOL


def _entry(name: str, catalyst: str, operator: Operator, selectivity: float | None = None) -> Function:
    return Function(
        name,
        _kernel(name),
        _boolean_if_comparable,
        catalyst=(catalyst,) if catalyst else (),
        arity=(2, 2),
        encoded=True,
        coerce=coerce_comparison,
        operator=operator,
        selectivity=selectivity,
        invalid_utf8=InvalidUtf8.BYTES,
    )


def _null_test(
    name: str, kernel: Kernel, catalyst: str, shown: str, logic: Logic, opposite: str, selectivity: float
) -> Function:
    return Function(
        name,
        kernel,
        _boolean_of_any_type,
        catalyst=(catalyst,),
        nullable=Nullability.NEVER,
        encoded=True,
        operator=Operator(logic=logic, opposite=opposite),
        selectivity=selectivity,
        takes_variants=True,
        calls=CallForm(shape=(1, shown)),
        invalid_utf8=InvalidUtf8.BYTES,
    )


register_internal(
    _entry(
        "eq",
        "EqualTo",
        Operator("=", ("==",), logic=Logic.EQUAL, flipped="eq", opposite="neq", equality=True),
        0.05,
    ),
    _entry("neq", "", Operator("<>", ("!=",), logic=Logic.NOT_EQUAL, flipped="neq", opposite="eq"), 0.95),
    _entry("lt", "LessThan", Operator("<", logic=Logic.LESS, flipped="gt", opposite="gteq")),
    _entry(
        "lteq", "LessThanOrEqual", Operator("<=", logic=Logic.LESS_OR_EQUAL, flipped="gteq", opposite="gt")
    ),
    _entry("gt", "GreaterThan", Operator(">", logic=Logic.GREATER, flipped="lt", opposite="lteq")),
    _entry(
        "gteq",
        "GreaterThanOrEqual",
        Operator(">=", logic=Logic.GREATER_OR_EQUAL, flipped="lteq", opposite="lt"),
    ),
    Function(
        "eq_null_safe",
        _null_safe,
        _boolean_if_comparable,
        catalyst=("EqualNullSafe",),
        arity=(2, 2),
        nullable=Nullability.NEVER,
        encoded=True,
        coerce=coerce_comparison,
        operator=Operator("<=>", logic=Logic.EQUAL_NULL_SAFE, flipped="eq_null_safe", equality=True),
        aliases=("equal_null",),
        calls=TWO_COLUMNS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
)
register(
    _null_test("isnull", _is_null, "IsNull", "({0} IS NULL)", Logic.IS_NULL, "isnotnull", 0.05),
    _null_test("isnotnull", _is_not_null, "IsNotNull", "({0} IS NOT NULL)", Logic.IS_NOT_NULL, "isnull", 1.0),
    Function("isnan", _is_nan, _boolean_of_any_type, catalyst=("IsNaN",), nullable=Nullability.NEVER),
)
