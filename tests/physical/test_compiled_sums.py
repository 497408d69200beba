"""Sums per group by the compiled loop and by numpy are the sums of Python's integers, also where int64 overflows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquery_spark.kernels.compiled import AGGREGATE_LOOPS
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.aggregates.reduce import sum_int64
from kquery_spark.physical.grouping.groups import loops_for

_LIMITS = [-(2**63), 2**63 - 1, -(2**62), 2**62, -1, 0, 1]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("id_type", [np.int64, np.uint16])
@settings(max_examples=60)
@given(
    few=st.lists(st.sampled_from(_LIMITS), max_size=6),
    bits=st.integers(1, 63),
    rows=st.integers(4095, 4110),
    count=st.sampled_from([2, 7, 5000]),
    seed=st.integers(0, 2**32 - 1),
)
def test_sums_are_exact(
    loops: None, id_type: type, compiled: bool, few: list[int], bits: int, rows: int, count: int, seed: int
):
    random = np.random.default_rng(seed)
    values = random.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), rows, np.int64, endpoint=False)
    values[: len(few)] = few
    ids = random.integers(0, count, rows).astype(id_type)
    expected = [0] * count
    for group, value in zip(ids.tolist(), values.tolist(), strict=True):
        expected[group] += value
    values.flags.writeable = False  # like the values of Arrow arrays
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr(reduce, "_compiled_sums", lambda *arguments: None)
        actual = sum_int64(values, ids, count)
    assert [int(total) for total in actual.to_pylist()] == expected


def test_the_loop_is_used_for_many_rows(loops: None, monkeypatch: pytest.MonkeyPatch):
    used = []

    def record(num_rows: int) -> object:
        kernels = loops_for(num_rows)
        used.append(kernels is not None)
        return kernels

    monkeypatch.setattr(reduce, "loops_for", record)
    assert AGGREGATE_LOOPS.kernels() is not None
    for rows, count in ((4095, 2), (4096, 1), (4096, 20_000), (4096, 2)):
        sum_int64(np.ones(rows, np.int64), np.zeros(rows, np.int64), count)
    assert used == [False, True]
