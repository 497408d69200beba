"""Aggregates of linear regressions, ``regr_slope(y, x)`` and its kin, and the product of a group's values."""

from __future__ import annotations

from kquery_spark.functions.aggregate.basics import DOUBLES, double_result, statistic
from kquery_spark.functions.aggregate_registry import AggregateFunction, register_aggregate
from kquery_spark.functions.registry import VersionChange

register_aggregate(
    statistic("regr_slope", "RegrSlope", 2),
    statistic("regr_intercept", "RegrIntercept", 2),
    statistic(
        "regr_r2",
        "RegrR2",
        2,
        changes=(
            VersionChange(
                "swaps its arguments if one of them is constant",
                since=(4, 2),
                patches=((3, 5, 9), (4, 0, 4), (4, 1, 2)),
            ),
        ),
    ),
    statistic("regr_sxy", "RegrSXY", 2),
    # Spark's optimizer replaces these two by regr_replacement over the x or y of the pairs.
    statistic("regr_sxx", arguments=2),
    statistic("regr_syy", arguments=2),
    AggregateFunction(
        "sum_of_squared_deviations",
        double_result,
        "sum_of_squared_deviations",
        ("RegrReplacement",),
        coerce=DOUBLES,
        internal=True,
    ),
    # PySpark's product(), which does not exist in SQL
    AggregateFunction("product", double_result, "product", ("Product",), coerce=DOUBLES, internal=True),
)
