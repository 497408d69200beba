"""Orders made of packed integers are those that numpy finds by comparing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kquery_spark.kernels.integer_order import (
    distinct_values,
    lexicographic_order,
    runs,
    stable_order,
)

LOWEST, HIGHEST = -(2**63), 2**63 - 1
RANGES = [(0, 9), (0, 2**20), (-5, 5), (LOWEST, HIGHEST), (LOWEST, LOWEST + 3), (HIGHEST - 3, HIGHEST)]
SIZES = [0, 1, 2, 255, 256, 257, 5000]


def values_of(low: int, high: int, size: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(size).integers(low, high, size, np.int64, endpoint=True)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_order_and_runs_are_numpys(low: int, high: int, size: int) -> None:
    values = values_of(low, high, size)
    for given_values in (values, np.sort(values), np.sort(values)[::-1]):
        known, firsts, ids, lengths = np.unique(
            given_values, return_index=True, return_inverse=True, return_counts=True
        )
        found = runs(given_values)
        np.testing.assert_array_equal(stable_order(given_values), np.argsort(given_values, kind="stable"))
        np.testing.assert_array_equal(found.firsts, firsts)
        np.testing.assert_array_equal(found.ids(), ids)
        np.testing.assert_array_equal(found.lengths, lengths)
        np.testing.assert_array_equal(distinct_values(given_values), known)


@given(arrays(np.int64, 300, elements=st.sampled_from([LOWEST, -1, 0, 1, 2**62, HIGHEST])))
def test_the_ends_of_the_range(values: npt.NDArray[np.int64]) -> None:
    np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("size", SIZES)
def test_several_columns(size: int) -> None:
    columns = [values_of(0, 3, size), values_of(LOWEST, HIGHEST, size), values_of(0, 3, size + 1)[:size]]
    expected = np.lexsort(columns[::-1])
    np.testing.assert_array_equal(lexicographic_order(columns), expected)


def test_the_values_stay_as_they_are() -> None:
    values = values_of(0, 9, 1000)
    before = values.copy()
    for use in (stable_order, distinct_values):
        use(values)
    runs(values).ids()
    np.testing.assert_array_equal(values, before)
