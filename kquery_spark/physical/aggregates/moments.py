"""Variance, covariance, correlation, skewness and kurtosis from central moments.

As in Spark's ``CentralMomentAgg``, the states are counts, means and sums of powers of the deviations from the mean. They can
be merged accurately, whereas ``sum(x * x) - sum(x) * sum(x) / n`` subtracts large, almost equal numbers. Values are first
shifted by one value of their group, so that a constant column has moments of exactly 0.

Two parts with n values, the mean m and the sum of squared deviations M2 merge like this: the deviations are taken from the
common mean, so each part adds ``n * (m - mean)^2``. For the parts {1, 3} (n 2, m 2, M2 2) and {8} (n 1, m 8, M2 0), the
mean is 4 and M2 is 2 + 2 * (2 - 4)^2 + 0 + 1 * (8 - 4)^2 = 26, as for {1, 3, 8}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import Unsupported
from kquery_spark.functions.registry import CallContext
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.aggregates.accumulator import Accumulator, register_accumulator
from kquery_spark.physical.aggregates.reduce import Doubles
from kquery_spark.physical.grouping.groups import Groups
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Flags, Int64s, Vector, validity

Result = Callable[[Sequence[Doubles]], tuple[Doubles, Flags]]  # values, and flags for those that are NULL
_BINOMIAL = {2: (1.0,), 3: (1.0, 3.0), 4: (1.0, 4.0, 6.0)}  # the first binomial coefficients of each order


def doubles(data: pa.Array) -> Doubles:
    """Return a column as a numpy array of doubles, with 0 for NULL."""
    values: Doubles = data.cast(t.DOUBLE, safe=False).fill_null(0.0).to_numpy(zero_copy_only=False)
    return values


def _first_finite_values(values: Doubles, ids: npt.NDArray[np.int64], count: int) -> Doubles:
    """Return the first finite value of each group; 0 for a group without one."""
    shift = np.zeros(count)
    finite = np.isfinite(values)
    shift[ids[finite][::-1]] = values[finite][::-1]
    return shift


def _vectors(columns: Sequence[Doubles]) -> list[Vector]:
    return [Vector(t.DOUBLE, pa.array(c)) for c in columns]


class _Moments(Accumulator):
    """Computes the result of an aggregate from its states by the function ``result``."""

    def __init__(self, result: Result) -> None:
        self._result = result

    @override
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        with np.errstate(all="ignore"):
            values, undefined = self._result([doubles(s.data) for s in states])
        return pa.array(values, mask=undefined)


class CentralMoments(_Moments):
    """Computes central moments. States: the count, the mean, and the sums of the powers 2 to ``order`` of the deviations.

    result: computes the values of the function from the states.
    """

    def __init__(self, order: int, result: Result) -> None:
        super().__init__(result)
        self._order = order

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (t.DOUBLE,) * (self._order + 1)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        data = args[0].filled(context.num_rows).plain()
        ids, rows = reduce.valid_rows(data, groups)
        values = reduce.take_rows(doubles(data), rows)
        with np.errstate(all="ignore"):
            n = np.bincount(ids, minlength=groups.count).astype(np.float64)
            # Two passes: the mean of each group, then the sums of the powers of the deviations (``away``) from it.
            shift = _first_finite_values(values, ids, groups.count)
            moved = values - shift[ids]
            mean = reduce.sum_weights(ids, moved, groups.count) / np.maximum(n, 1.0)
            away = moved - mean[ids]
            power, sums = away, []
            for _ in range(2, self._order + 1):
                power = power * away
                sums.append(reduce.sum_weights(ids, power, groups.count))
            return _vectors([n, shift + mean, *sums])

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        columns = [doubles(s.data) for s in states]
        some = columns[0] > 0
        n, mean, *moments = (c[some] for c in columns)
        ids, count = groups.ids[some], groups.count
        with np.errstate(all="ignore"):
            total = reduce.sum_weights(ids, n, count)
            shift = _first_finite_values(mean, ids, count)
            moved = mean - shift[ids]
            center = reduce.sum_weights(ids, n * moved, count) / np.maximum(total, 1.0)
            away = moved - center[ids]
            # The sum of (x - center)^order over a part, by the binomial theorem with x - center = (x - mean) + away.
            # For order 3: M3 + 3 * M2 * away + n * away^3. The term with the first power is 0.
            sums = []
            for order in range(2, self._order + 1):
                part = n * away**order
                for k, factor in enumerate(_BINOMIAL[order][: order - 1]):
                    part = part + factor * moments[order - 2 - k] * away**k
                sums.append(reduce.sum_weights(ids, part, count))
            return _vectors([total, shift + center, *sums])

    def frame_states(self, vector: Vector, low: Int64s, high: Int64s) -> list[Vector]:
        """Return the states of a window frame (rows ``low:high``) for each row.

        The values are added one by one, as Spark does. Merging the states of parts would give other last digits, and a
        skewness that is nearly 0 consists of nothing else. The loop is over the positions within a frame, and each step adds
        one value to all frames that are long enough.
        """
        data = vector.plain()
        values, valid, lengths = doubles(data), validity(data), high - low
        states = [np.zeros(len(low)) for _ in range(self._order + 1)]
        for offset in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(lengths > offset)
            members = low[rows] + offset
            if valid is not None:
                present = valid[members]
                rows, members = rows[present], members[present]
            added = self._with_values([state[rows] for state in states], values[members])
            for state, new in zip(states, added, strict=False):
                state[rows] = new
        return _vectors(states)

    @staticmethod
    def _with_values(states: Sequence[Doubles], values: Doubles) -> tuple[Doubles, ...]:
        """Return the states, up to the fourth moment, after one more value each.

        The order of operations is that of ``CentralMomentAgg.updateExpressionsDef`` in Spark.
        """
        n, mean, m2, m3, m4 = (states[i] if i < len(states) else np.zeros(1) for i in range(5))
        with np.errstate(all="ignore"):
            total = n + 1.0
            away = values - mean
            step = away / total
            away2, step2 = away * away, step * step
            m2 = m2 + away * (away - step)
            m3 = m3 - 3.0 * step * m2 + away * (away2 - step2)
            m4 = m4 - 4.0 * step * m3 - 6.0 * step2 * m2 + away * (away * away2 - step * step2)
            return total, mean + step, m2, m3, m4


class Comoments(_Moments):
    """Computes comoments of pairs. States: the count, both means, and the sum of the products of the deviations.

    squares: the states also have the sums of the squared deviations of both columns, as a correlation needs.
    """

    def __init__(self, squares: bool, result: Result) -> None:
        super().__init__(result)
        self._squares = squares

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (t.DOUBLE,) * (6 if self._squares else 4)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        data = [a.filled(context.num_rows).plain() for a in args]
        ids, (x, y) = groups.ids, (doubles(d) for d in data)
        masks = [v for v in map(validity, data) if v is not None]
        if masks:
            both = np.logical_and.reduce(masks)
            ids, x, y = ids[both], x[both], y[both]
        ones = np.ones(len(ids))
        zeros = np.zeros(len(ids))
        return self._combined([ones, x, y, zeros, zeros, zeros], ids, groups.count)

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        columns = [doubles(s.data) for s in states]
        some = columns[0] > 0
        columns = [c[some] for c in columns]
        if not self._squares:
            columns += [np.zeros(len(columns[0]))] * 2
        return self._combined(columns, groups.ids[some], groups.count)

    def _combined(self, parts: Sequence[Doubles], ids: npt.NDArray[np.int64], count: int) -> list[Vector]:
        """Merge the states ``parts`` by group. A single row is a state with the count 1 and without deviations."""
        n, x, y, cxy, cxx, cyy = parts
        with np.errstate(all="ignore"):
            total = reduce.sum_weights(ids, n, count)
            centers, aways = [], []
            for mean in (x, y):
                shift = _first_finite_values(mean, ids, count)
                moved = mean - shift[ids]
                center = reduce.sum_weights(ids, n * moved, count) / np.maximum(total, 1.0)
                centers.append(shift + center)
                aways.append(moved - center[ids])
            dx, dy = aways
            sums = [reduce.sum_weights(ids, cxy + n * dx * dy, count)]
            if self._squares:
                sums.append(reduce.sum_weights(ids, cxx + n * dx * dx, count))
                sums.append(reduce.sum_weights(ids, cyy + n * dy * dy, count))
        return _vectors([total, *centers, *sums])


def _variance(sample: bool, root: bool) -> Result:
    def result(states: Sequence[Doubles]) -> tuple[Doubles, Flags]:
        n, m2 = states[0], states[2]
        values = m2 / (n - 1.0 if sample else n)
        return np.asarray(np.sqrt(values) if root else values), n <= (1.0 if sample else 0.0)

    return result


def _skewness(states: Sequence[Doubles]) -> tuple[Doubles, Flags]:
    n, _, m2, m3 = states
    return np.sqrt(n) * m3 / np.sqrt(m2 * m2 * m2), (n == 0.0) | (m2 == 0.0)


def _kurtosis(states: Sequence[Doubles]) -> tuple[Doubles, Flags]:
    n, _, m2, _, m4 = states
    return n * m4 / (m2 * m2) - 3.0, (n == 0.0) | (m2 == 0.0)


def _covariance(sample: bool) -> Result:
    def result(states: Sequence[Doubles]) -> tuple[Doubles, Flags]:
        n, c = states[0], states[3]
        return c / (n - 1.0 if sample else n), n <= (1.0 if sample else 0.0)

    return result


def _correlation(states: Sequence[Doubles]) -> tuple[Doubles, Flags]:
    n, c, xx, yy = states[0], states[3], states[4], states[5]
    spread, undefined = np.sqrt(xx * yy), (n <= 1.0) | (xx == 0.0) | (yy == 0.0)
    if ((spread == 0.0) & ~undefined).any():
        raise Unsupported("the correlation of values this close to each other is a division by zero in Spark")
    return c / spread, undefined


register_accumulator("stddev_samp", CentralMoments(2, _variance(sample=True, root=True)))
register_accumulator("stddev_pop", CentralMoments(2, _variance(sample=False, root=True)))
register_accumulator("var_samp", CentralMoments(2, _variance(sample=True, root=False)))
register_accumulator("var_pop", CentralMoments(2, _variance(sample=False, root=False)))
register_accumulator("skewness", CentralMoments(3, _skewness))
register_accumulator("kurtosis", CentralMoments(4, _kurtosis))
register_accumulator("covar_samp", Comoments(False, _covariance(sample=True)))
register_accumulator("covar_pop", Comoments(False, _covariance(sample=False)))
register_accumulator("corr", Comoments(True, _correlation))
