"""max_by and min_by: the value of the row with the largest or smallest key, or the values of several such rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.functions.aggregate.basics import ordered_result
from kquery_spark.functions.aggregate_registry import AggregateFunction, ConstantArgument, register_aggregate
from kquery_spark.functions.call_form import TWO_COLUMNS, CallForm
from kquery_spark.kernels.compiled import AGGREGATE_LOOPS
from kquery_spark.types import names as t

_MAX_COUNT = 100_000  # the largest number of values of one call


def _value_by_type(types: Sequence[pa.DataType]) -> pa.DataType:
    ordered_result(types[1:])
    return types[0]


def _values_by_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not t.is_integral(types[2]):
        raise PlanError(f"a whole number of values is needed, not {t.spark_name(types[2])}")
    return pa.list_(pa.field("element", _value_by_type(types)))


def check_count(count: object) -> None:
    """Raise PlanError if max_by and min_by cannot return this number of values."""
    if not isinstance(count, int) or not 1 <= count <= _MAX_COUNT:
        raise PlanError(f"the number of values is in [1, {_MAX_COUNT}], not {count}")


def _value_by(name: str, catalyst: str, several: str) -> AggregateFunction:
    return AggregateFunction(
        name,
        _value_by_type,
        name,
        (catalyst,),
        (2, 2),
        ordered=True,
        keeps_nulls=True,
        calls=TWO_COLUMNS,
        overload=(3, several),
    )


def _values_by(
    name: str, shown: str, catalyst: tuple[str, ...] = (), variants: tuple[tuple[str, object, str], ...] = ()
) -> AggregateFunction:
    """Define a function that returns an array; its arguments are the value, the key, and a constant number of rows."""
    return AggregateFunction(
        name,
        _values_by_type,
        name,
        catalyst,
        (3, 3),
        coerce=lambda types: [*types[:2], t.INT],
        ordered=True,
        keeps_nulls=True,
        over_windows=False,
        constants=(2,),
        constant_meaning=ConstantArgument.NUMBER_OF_VALUES,
        variants=variants,
        internal=True,
        loops=AGGREGATE_LOOPS,
        calls=CallForm(columns=(0, 1), shown_as=shown),
    )


register_aggregate(
    _value_by("max_by", "MaxBy", "max_by_several"),
    _value_by("min_by", "MinBy", "min_by_several"),
    _values_by("max_by_several", "max_by", ("MaxMinByK",), (("reverse", True, "min_by_several"),)),
    _values_by("min_by_several", "min_by"),
)
