"""The aggregates of linear regression, which use the same sums of deviations as covariances, and ``product``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.functions.registry import CallContext
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.aggregates.accumulator import Reduction, register_accumulator
from kquery_spark.physical.aggregates.moments import CentralMoments, Comoments, Result, doubles
from kquery_spark.physical.aggregates.reduce import Doubles
from kquery_spark.physical.grouping.groups import Groups
from kquery_spark.types import names as t
from kquery_spark.types.vector import Flags, Vector

# The arguments are the dependent variable y and the independent variable x. The states (see ``Comoments``) are the number of
# pairs, the means of y and x, the sum of the products of the deviations (sxy), and the sums of their squares (syy, sxx).


def _slope(states: Sequence[Doubles]) -> tuple[Doubles, Flags]:
    _, _, _, sxy, _, sxx = states
    return sxy / sxx, sxx == 0.0


def _intercept(states: Sequence[Doubles]) -> tuple[Doubles, Flags]:
    _, y, x, sxy, _, sxx = states
    return y - sxy / sxx * x, sxx == 0.0


def _r2(states: Sequence[Doubles]) -> tuple[Doubles, Flags]:
    """Return the square of the correlation; 1 if y is constant, NULL if x is."""
    _, _, _, sxy, syy, sxx = states
    correlation = sxy / np.sqrt(syy * sxx)
    return np.where(syy == 0.0, 1.0, correlation * correlation), sxx == 0.0


def _state(index: int) -> Result:
    """Return a function whose result is one of the states, or NULL for a group without rows."""
    return lambda states: (states[index], states[0] == 0.0)


class Product(Reduction):
    """Multiplies the values that are not NULL, in row order."""

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (t.DOUBLE,)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        data = args[0].filled(context.num_rows).plain()
        ids, rows = reduce.valid_rows(data, groups)
        product = np.ones(groups.count)
        with np.errstate(all="ignore"):
            np.multiply.at(product, ids, reduce.take_rows(doubles(data), rows))
        return [Vector(t.DOUBLE, pa.array(product, mask=reduce.count_valid(data, groups) == 0))]


register_accumulator("regr_slope", Comoments(True, _slope))
register_accumulator("regr_intercept", Comoments(True, _intercept))
register_accumulator("regr_r2", Comoments(True, _r2))
register_accumulator("regr_sxx", Comoments(True, _state(5)))
register_accumulator("regr_sxy", Comoments(False, _state(3)))
register_accumulator("regr_syy", Comoments(True, _state(4)))
register_accumulator("sum_of_squared_deviations", CentralMoments(2, _state(2)))
register_accumulator("product", Product())
