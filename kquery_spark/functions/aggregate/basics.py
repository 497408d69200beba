"""The aggregate functions and their result types."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.functions.aggregate_registry import AggregateFunction, ConstantArgument, register_aggregate
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.registry import (
    CatalystParameters,
    VersionChange,
    accept,
    cast_to,
    first_argument_type,
    fixed,
)
from kquery_spark.kernels.ordered_bytes import can_order, has_floats
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
    if t.is_interval(dtype):
        return dtype
    raise PlanError(f"sum does not accept {t.spark_name(dtype)}")


def _avg(types: Sequence[pa.DataType]) -> pa.DataType:
    dtype = types[0]
    if t.is_decimal(dtype):
        return decimals.bounded(dtype.precision + 4, dtype.scale + 4)
    if t.is_numeric(dtype):
        return t.DOUBLE
    if t.is_interval(dtype):
        return dtype
    raise PlanError(f"avg does not accept {t.spark_name(dtype)}")


def ordered_result(types: Sequence[pa.DataType]) -> pa.DataType:
    """The type of the first argument; raises PlanError if its values cannot be ordered."""
    if t.is_nested(types[0]) and not can_order(types[0]):
        raise PlanError(f"values of type {t.spark_name(types[0])} have no order")
    return first_argument_type(types)


def _number(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [t.DOUBLE] if types[0] in (t.STRING, t.NULL) else types


def _integer(types: Sequence[pa.DataType]) -> pa.DataType:
    if not t.is_integral(types[0]):
        raise PlanError(f"bits of {t.spark_name(types[0])} cannot be combined, only of whole numbers")
    return types[0]


def double_result(types: Sequence[pa.DataType]) -> pa.DataType:
    """Double; raises PlanError if an argument is not a number."""
    for dtype in types:
        if not t.is_numeric(dtype):
            raise PlanError(f"a number is needed, not {t.spark_name(dtype)}")
    return t.DOUBLE


def _list(types: Sequence[pa.DataType]) -> pa.DataType:
    return pa.list_(pa.field("element", types[0], False))


def _set(types: Sequence[pa.DataType]) -> pa.DataType:
    if t.is_nested(types[0]) and (not can_order(types[0]) or has_floats(types[0])):
        raise PlanError(f"collect_set of {t.spark_name(types[0])} is not supported by the engine")
    return _list(types)


def _hashed(types: Sequence[pa.DataType]) -> pa.DataType:
    if not can_order(types[0]):
        raise PlanError(
            f"values of type {t.spark_name(types[0])} have no hash, as equal maps may differ in order"
        )
    return t.LONG


DOUBLES = cast_to(t.DOUBLE)
_BOOLEAN = accept(t.BOOL, t.BOOL)
_WITHOUT_NULLS = CatalystParameters(fixed=(("ignoreNulls", True),))


def statistic(
    name: str,
    catalyst: str = "",
    arguments: int = 1,
    aliases: tuple[str, ...] = (),
    changes: tuple[VersionChange, ...] = (),
    pandas: str = "",
) -> AggregateFunction:
    """Define a statistic of doubles; it is NULL for no values, and if one value does not define it.

    pandas: the class for it in pandas on Spark, which with ``ddof`` 0 computes the statistic of the population instead.
    """
    return AggregateFunction(
        name,
        double_result,
        name,
        tuple(filter(None, (catalyst, pandas))),
        (arguments, arguments),
        coerce=DOUBLES,
        aliases=aliases,
        calls=CallForm(columns=tuple(range(arguments))),
        parameters=CatalystParameters(fixed=(("nullOnDivideByZero", True),)),
        variants=(("ddof", 0, name.replace("_samp", "_pop")),) if pandas else (),
        changes=changes,
    )


def _frame_end(
    name: str, catalyst: str, over_window: str, aliases: tuple[str, ...] = (), fills_rows: bool = False
) -> AggregateFunction:
    """Define FIRST or LAST, the value of the first or last row."""
    return AggregateFunction(
        name,
        first_argument_type,
        name,
        (catalyst,),
        aliases=aliases,
        ordered=True,
        takes_null_treatment=True,
        over_window=over_window,
        keeps_nulls=True,
        fills_rows=fills_rows,
        variants=(("ignoreNulls", True, f"{name}_ignore_nulls"),),
    )


def _ignoring_nulls(name: str, over_window: str, aliases: tuple[str, ...] = ()) -> AggregateFunction:
    """Define the internal function that implements ``name`` with IGNORE NULLS."""
    entry = f"{name}_ignore_nulls"
    return AggregateFunction(
        entry,
        first_argument_type,
        entry,
        aliases=aliases,
        ordered=True,
        over_window=over_window,
        ignores_nulls=True,
        internal=True,
    )


def _extreme(name: str, catalyst: str, extreme: str) -> AggregateFunction:
    return AggregateFunction(
        name, ordered_result, name, (catalyst,), duplicate_free=True, extreme=extreme, repeatable=True
    )


register_aggregate(
    AggregateFunction(
        "sum",
        _sum,
        "sum",
        ("Sum",),
        coerce=_number,
        adds=True,
        repeatable=True,
        calls=CallForm(distinct_names=("sumDistinct", "sum_distinct")),
    ),
    AggregateFunction(
        "avg",
        _avg,
        "avg",
        ("Average",),
        coerce=_number,
        aliases=("mean",),
        adds=True,
        adds_as_doubles=True,
        repeatable=True,
    ),
    AggregateFunction(
        "count",
        fixed(t.LONG),
        "count",
        ("Count",),
        arity=(0, None),
        nullable=False,
        counts=True,
        takes_star=True,
        repeatable=True,
        calls=CallForm(distinct_names=("countDistinct", "count_distinct")),
    ),
    AggregateFunction(
        "count_if",
        accept(t.LONG, t.BOOL),
        "count_if",
        ("CountIf",),
        nullable=False,
        counts=True,
        counts_true=True,
    ),
    # the arguments are x and, optionally, the maximum relative standard deviation, a constant
    AggregateFunction(
        "approx_count_distinct",
        _hashed,
        "approx_count_distinct",
        ("HyperLogLogPlusPlus",),
        arity=(1, 2),
        nullable=False,
        coerce=lambda types: [types[0], *[t.DOUBLE for _ in types[1:]]],
        duplicate_free=True,
        over_windows=False,
        constants=(1,),
        constant_meaning=ConstantArgument.RELATIVE_ERROR,
        counts=True,
        calls=CallForm(shape=(2, "approx_count_distinct({0})")),
    ),
    _extreme("min", "Min", "least"),
    _extreme("max", "Max", "greatest"),
    AggregateFunction(
        "bool_and", _BOOLEAN, "min", ("BoolAnd",), aliases=("every",), duplicate_free=True, extreme="least"
    ),
    AggregateFunction(
        "bool_or",
        _BOOLEAN,
        "max",
        ("BoolOr",),
        aliases=("some", "any"),
        duplicate_free=True,
        extreme="greatest",
    ),
    AggregateFunction("bit_and", _integer, "bit_and", ("BitAndAgg",), duplicate_free=True),
    AggregateFunction("bit_or", _integer, "bit_or", ("BitOrAgg",), duplicate_free=True),
    AggregateFunction("bit_xor", _integer, "bit_xor", ("BitXorAgg",)),
    _frame_end("first", "First", "first_value", aliases=("any_value",), fills_rows=True),
    _ignoring_nulls("first", "first_value", aliases=("any_value_ignore_nulls",)),
    _frame_end("last", "Last", "last_value"),
    _ignoring_nulls("last", "last_value"),
    AggregateFunction(
        "collect_list",
        _list,
        "collect_list",
        ("CollectList",),
        aliases=("array_agg",),
        nullable=False,
        ordered=True,
        calls=CallForm(shown_as="collect_list"),
        parameters=_WITHOUT_NULLS,
    ),
    AggregateFunction(
        "collect_set",
        _set,
        "collect_set",
        ("CollectSet",),
        parameters=_WITHOUT_NULLS,
        nullable=False,
        duplicate_free=True,
        changes=(
            VersionChange("keeps the sign of zeros in collect_set", lambda types, _: has_floats(types[0])),
        ),
    ),
    statistic("stddev_samp", "StddevSamp", aliases=("stddev", "std"), pandas="PandasStddev"),
    statistic("stddev_pop", "StddevPop"),
    statistic("var_samp", "VarianceSamp", aliases=("variance",), pandas="PandasVariance"),
    statistic("var_pop", "VariancePop"),
    statistic("skewness", "Skewness"),
    statistic("kurtosis", "Kurtosis"),
    statistic("covar_samp", "CovSample", 2, pandas="PandasCovar"),
    statistic("covar_pop", "CovPopulation", 2),
    statistic(
        "corr",
        "Corr",
        2,
        changes=(VersionChange("gives NaN, or divides by zero, for a column of one value"),),
    ),
)
