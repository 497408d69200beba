"""The digits of a decimal as a bigint: Spark computes sums and averages of short decimals with them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.functions.registry import CallContext, Function, register_internal
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_MAX_DIGITS = 18


def _digits(args: Sequence[Vector], context: CallContext) -> Data:
    (child,) = args
    if child.is_narrow:
        return child.data
    # Digits are the value at scale 0: the same bits under another type.
    return child.plain().view(pa.decimal128(38, 0)).cast(t.LONG)


def _long(types: Sequence[pa.DataType]) -> pa.DataType:
    if not t.is_decimal(types[0]) or types[0].precision > _MAX_DIGITS:
        raise PlanError(f"the digits of {t.spark_name(types[0])} do not fit a bigint")
    return t.LONG


def _instant(args: Sequence[Vector], context: CallContext) -> Data:
    """Microseconds as the timestamp they are, and back."""
    return args[0].data.cast(context.dtype) if args[0].is_scalar else args[0].data.view(context.dtype)


def _instant_type(types: Sequence[pa.DataType]) -> pa.DataType:
    return t.LONG if pa.types.is_timestamp(types[0]) else t.timestamp("UTC")


register_internal(
    Function("unscaled_value", _digits, _long, catalyst=("UnscaledValue",), encoded=True),
    Function("precise_timestamp", _instant, _instant_type),
)
