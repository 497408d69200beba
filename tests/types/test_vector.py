"""Columns change between their physical forms value by value, and slices of them by themselves."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquery_spark.types.vector import narrow, widen


@given(
    st.lists(st.one_of(st.none(), st.integers(-(10**18) + 1, 10**18 - 1)), min_size=1, max_size=40),
    st.integers(0, 39),
    st.integers(0, 40),
)
def test_slices_of_decimals_change_form_by_themselves(
    numbers: list[int | None], offset: int, length: int
) -> None:
    dtype = pa.decimal128(18, 2)
    exact = [None if n is None else Decimal(n).scaleb(-2) for n in numbers]
    held = pa.array(numbers, pa.int64()).slice(offset, length)
    wide = widen(held, dtype)
    wide.validate(full=True)
    assert wide.to_pylist() == exact[offset : offset + length]
    for precision in (18, 38):
        sliced = pa.array(exact, pa.decimal128(precision, 2)).slice(offset, length)
        slim = narrow(sliced)
        slim.validate(full=True)
        assert slim.to_pylist() == held.to_pylist()


@pytest.mark.parametrize("null", [False, True])
def test_a_slice_takes_no_more_memory_than_its_rows(null: bool) -> None:
    numbers = pa.array([None if null and i % 7 == 0 else i for i in range(100_000)], pa.int64())
    wide = widen(numbers.slice(99_991), pa.decimal128(18, 2))
    slim = narrow(widen(numbers, pa.decimal128(18, 2)).slice(99_991))
    assert len(wide) == len(slim) == 9
    for array in (wide, slim):
        assert sum(b.size for b in array.buffers() if b is not None) < 1000
