"""Factorials, and bit operations on integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import PlanError
from kquery_spark.functions.core.arguments import joint_mask, numbers
from kquery_spark.functions.registry import (
    CallContext,
    Function,
    Nullability,
    Operator,
    accept,
    cast_to,
    first_argument_type,
    register,
    register_internal,
)
from kquery_spark.kernels.text import Bytes
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_FACTORIALS = np.array([math.factorial(n) for n in range(21)], np.int64)  # 21! exceeds BIGINT


def _factorial(args: Sequence[Vector], context: CallContext) -> Data:
    values = numbers(args[0], context.num_rows)
    outside = (values < 0) | (values > 20)
    mask = joint_mask(args, context.num_rows)
    return pa.array(
        _FACTORIALS[np.where(outside, 0, values)], mask=outside if mask is None else mask | outside
    )


def _elementwise(kernel: Any) -> Any:
    """Return an implementation that calls a pyarrow kernel with the arguments."""
    return lambda args, context: kernel(*(a.data for a in args))


def _shift(op: str) -> Any:
    """Return the implementation of a shift. As in Java, only the low 5 (INT) or 6 (BIGINT) bits of the distance count."""

    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        bits = context.dtype.bit_width
        values = numbers(args[0], n)
        distance = numbers(args[1], n) & (bits - 1)
        if op == "unsigned":
            unsigned = values.astype(f"int{bits}").view(f"uint{bits}") >> distance.astype(f"uint{bits}")
            result = unsigned.view(f"int{bits}")
        elif op == "left":
            result = (
                (values.view(np.uint64) << distance.astype(np.uint64)).view(np.int64).astype(f"int{bits}")
            )
        else:
            result = (values >> distance).astype(f"int{bits}")
        return pa.array(result, context.dtype, mask=joint_mask(args, n))

    return run


_ONES_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)


def ones_of_bytes(raw: Bytes) -> Bytes:
    """Return the number of one bits in each byte. numpy has a function for this since version 2.0."""
    return np.bitwise_count(raw) if hasattr(np, "bitwise_count") else _ONES_OF_BYTE[raw]


def _bit_count(args: Sequence[Vector], context: CallContext) -> Data:
    array = args[0].array(context.num_rows)
    if array.type == t.BOOL:
        return array.cast(t.INT)
    # As in Spark, the bits are those of the value as a BIGINT: a TINYINT of -1 has 64.
    rows_of_bytes = np.ascontiguousarray(numbers(args[0], context.num_rows)).view(np.uint8).reshape(-1, 8)
    ones = ones_of_bytes(rows_of_bytes).sum(axis=1, dtype=np.int32)
    return pa.array(ones, mask=joint_mask(args, context.num_rows))


def _common_integral_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if any(dtype != types[0] or not t.is_integral(dtype) for dtype in types):
        raise PlanError(
            f"bit operations need integers of one type, not {', '.join(map(t.spark_name, types))}"
        )
    return types[0]


def _coerce_integral(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    order = (t.BYTE, t.SHORT, t.INT, t.LONG)
    known = [order.index(dtype) if dtype in order else 3 for dtype in types]
    return [order[max(known)]] * len(types)


_SHIFT_TYPES = accept(first_argument_type, lambda dtype: dtype in (t.INT, t.LONG), t.INT)


def _coerce_shift(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [t.LONG if types[0] == t.LONG else t.INT, t.INT]


def _bitwise_function(name: str, kernel: Any, catalyst: str, symbol: str) -> Function:
    count = 1 if name == "bitnot" else 2
    return Function(
        name,
        _elementwise(kernel),
        _common_integral_type,
        catalyst=(catalyst,),
        arity=(count, count),
        coerce=_coerce_integral,
        operator=Operator(symbol),
    )


def _shift_function(name: str, op: str, catalyst: str, symbol: str) -> Function:
    return Function(
        name,
        _shift(op),
        _SHIFT_TYPES,
        catalyst=(catalyst,),
        arity=(2, 2),
        coerce=_coerce_shift,
        operator=Operator(symbol),
    )


register(
    Function(
        "factorial",
        _factorial,
        accept(t.LONG, t.INT),
        catalyst=("Factorial",),
        nullable=Nullability.OTHER_REASONS,
        coerce=cast_to(t.INT),
    ),
)
register_internal(
    _bitwise_function("bitand", pc.bit_wise_and, "BitwiseAnd", "&"),
    _bitwise_function("bitor", pc.bit_wise_or, "BitwiseOr", "|"),
    _bitwise_function("bitxor", pc.bit_wise_xor, "BitwiseXor", "^"),
    _bitwise_function("bitnot", pc.bit_wise_not, "BitwiseNot", "~"),
)
register(
    _shift_function("shiftleft", "left", "ShiftLeft", "<<"),
    _shift_function("shiftright", "right", "ShiftRight", ">>"),
    _shift_function("shiftrightunsigned", "unsigned", "ShiftRightUnsigned", ">>>"),
    Function(
        "bit_count",
        _bit_count,
        accept(t.INT, lambda dtype: dtype == t.BOOL or t.is_integral(dtype)),
        catalyst=("BitwiseCount",),
    ),
)
