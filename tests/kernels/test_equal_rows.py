"""Equal rows that a hash table finds are those that numpy finds by sorting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kquery_spark.kernels import equal_rows
from kquery_spark.kernels.equal_rows import first_equal_rows, first_rows

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def check(values: npt.NDArray[np.int64]) -> None:
    before = values.copy()
    _, firsts, ids = np.unique(values, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(first_equal_rows(values), firsts[ids])
    np.testing.assert_array_equal(first_rows(values), np.sort(firsts))
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("size", [0, 1, 2, 255, 5000, 70_000])
@pytest.mark.parametrize("distinct", [1, 3, 100, 50_000])
@pytest.mark.parametrize("step", [1, 2**20, 2**44])
def test_first_rows_are_numpys(size: int, distinct: int, step: int) -> None:
    values = np.random.default_rng(size).integers(-distinct, distinct, size, np.int64) * step
    for order in (values, np.sort(values), np.sort(values)[::-1], values[::2]):
        check(order)


@given(arrays(np.int64, 300, elements=st.sampled_from([LOWEST, -1, 0, 1, 2**62, HIGHEST])))
def test_the_ends_of_the_range(values: npt.NDArray[np.int64]) -> None:
    check(values)


def test_values_that_always_collide_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With multipliers of zero, all values claim one slot, and each round resolves only one value."""
    monkeypatch.setattr(equal_rows, "MULTIPLIER", np.uint64(0))
    monkeypatch.setattr(equal_rows, "_NEXT_MULTIPLIER", np.uint64(0))
    check(np.random.default_rng(1).integers(0, 400, 3000, np.int64))
