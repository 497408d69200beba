"""Order statistics of a group: percentiles, the median, and the mode."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.functions.aggregate.basics import DOUBLES, double_result, ordered_result
from kquery_spark.functions.aggregate_registry import AggregateFunction, ConstantArgument, register_aggregate
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.registry import CatalystParameters, VersionChange
from kquery_spark.types import names as t

_ARRAY_OF_DOUBLES = pa.list_(pa.field("element", t.DOUBLE, False))


_INTERPOLATION = VersionChange(
    "interpolates percentiles differently: between -inf and a number, it returns -inf, not NaN"
)


def _percentile(types: Sequence[pa.DataType]) -> pa.DataType:
    """Double, or an array of doubles if the shares are an array."""
    value, share, *frequency = types
    for dtype in frequency:
        if not t.is_integral(dtype):
            raise PlanError(f"the frequency of a percentile is a whole number, not {t.spark_name(dtype)}")
    if not pa.types.is_list(share):
        return double_result([value, share])
    double_result([value, share.value_type])
    return _ARRAY_OF_DOUBLES


def _doubles(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [t.DOUBLE, *(dtype if pa.types.is_list(dtype) else t.DOUBLE for dtype in types[1:])]


def _mode(types: Sequence[pa.DataType]) -> pa.DataType:
    dtype = types[0]
    if t.is_fractional(dtype):
        raise Unsupported(f"mode of {t.spark_name(dtype)} is not supported: Spark counts -0.0 and 0.0 apart")
    if dtype == t.BINARY or t.is_nested(dtype):
        raise Unsupported(
            f"mode of {t.spark_name(dtype)} is not supported: Spark may count equal values apart"
        )
    return ordered_result(types)


def _percentile_function(name: str, catalyst: tuple[str, ...] = (), **fields: object) -> AggregateFunction:
    """Define a percentile function; its arguments are the values, and one share or an array of shares."""
    return AggregateFunction(
        name,
        _percentile,
        name,
        catalyst,
        arity=(2, 2),
        constants=(1,),
        variants=() if not catalyst else (("reverse", True, f"{name}_descending"),),
        internal=name != "percentile",
        **fields,  # type: ignore[arg-type]
    )


register_aggregate(
    _percentile_function(
        "percentile",
        ("Percentile",),
        coerce=_doubles,
        constant_meaning=ConstantArgument.SHARES,
        weighted="percentile_weighted",
        calls=CallForm(adds=(2, ", 1")),
        changes=(_INTERPOLATION,),
    ),
    AggregateFunction(
        "percentile_weighted",
        _percentile,
        "percentile_weighted",
        arity=(3, 3),
        constants=(1,),
        internal=True,
        raises=True,
        changes=(_INTERPOLATION,),
    ),
    # percentile_cont and percentile_disc with WITHIN GROUP (ORDER BY x DESC)
    _percentile_function("percentile_descending", changes=(_INTERPOLATION,)),
    _percentile_function(
        "percentile_disc",
        ("PercentileDisc",),
        parameters=CatalystParameters(fixed=(("legacyCalculation", False),)),
        changes=(VersionChange("counts the rows of percentile_disc from zero", since=(4, 0)),),
    ),
    _percentile_function("percentile_disc_descending"),
    # mode_highest is mode(x, true) and WITHIN GROUP (ORDER BY x DESC). Without a direction, Spark returns any of the most
    # frequent values, in the order of its hash map.
    AggregateFunction(
        "mode",
        _mode,
        "mode",
        ("Mode",),
        variants=(("reverseOpt", False, "mode_highest"),),
        calls=CallForm(flag_shapes=("mode() WITHIN GROUP (ORDER BY {0} DESC)", "mode({0})")),
    ),
    AggregateFunction("mode_highest", _mode, "mode_highest", internal=True),
    AggregateFunction(
        "median", double_result, "median", ("Median",), coerce=DOUBLES, changes=(_INTERPOLATION,)
    ),
)
