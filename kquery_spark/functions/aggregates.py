"""The aggregate functions and their result types."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.functions.aggregate_registry import AggregateFunction, register_aggregate
from kquery_spark.functions.registry import fixed, same
from kquery_spark.types import decimals
from kquery_spark.types import names as t


def _sum(types: Sequence[pa.DataType]) -> pa.DataType:
    dtype = types[0]
    if t.is_decimal(dtype):
        return decimals.bounded(dtype.precision + 10, dtype.scale)
    if t.is_integral(dtype):
        return t.LONG
    if t.is_fractional(dtype):
        return t.DOUBLE
    raise PlanError(f"sum cannot be taken of {t.spark_name(dtype)}")


def _avg(types: Sequence[pa.DataType]) -> pa.DataType:
    dtype = types[0]
    if t.is_decimal(dtype):
        return decimals.bounded(dtype.precision + 4, dtype.scale + 4)
    if t.is_numeric(dtype):
        return t.DOUBLE
    raise PlanError(f"avg cannot be taken of {t.spark_name(dtype)}")


def _ordered(types: Sequence[pa.DataType]) -> pa.DataType:
    if t.is_nested(types[0]):
        raise PlanError(f"values of type {t.spark_name(types[0])} are not ordered by the engine")
    return same(types)


def _number(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [t.DOUBLE] if types[0] in (t.STRING, t.NULL) else types


register_aggregate(
    AggregateFunction("sum", _sum, "sum", ("Sum",), coerce=_number),
    AggregateFunction("avg", _avg, "avg", ("Average",), coerce=_number, aliases=("mean",)),
    AggregateFunction("count", fixed(t.LONG), "count", ("Count",), arity=(0, None), nullable=False),
    AggregateFunction("min", _ordered, "min", ("Min",), duplicate_free=True),
    AggregateFunction("max", _ordered, "max", ("Max",), duplicate_free=True),
)
