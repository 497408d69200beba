"""Layouts filled with the digits of numbers are the numbers' strings."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kquery_spark.kernels.digit_layouts import DIGIT, digit_cells, digit_counts, filled_layouts

NUMBERS = st.lists(st.none() | st.integers(0, 2**63 - 1) | st.integers(0, 1000), max_size=40)


@given(NUMBERS, st.integers(0, 4))
def test_each_row_has_its_digits_in_the_layout_of_their_number(numbers: list[int | None], scale: int) -> None:
    values = np.array([number or 0 for number in numbers], np.int64)
    whole, fraction = np.divmod(values, 10**scale)
    mask = np.array([number is None for number in numbers], np.bool_)

    def layout(count: int) -> str:
        return f"<{DIGIT * count}.{DIGIT * scale}>"

    strings = filled_layouts(digit_counts(whole), layout, digit_cells(whole, fraction, scale), mask)
    expected = [
        f"<{str(w) if w else ''}.{str(f).zfill(scale) if scale else ''}>"
        for w, f in zip(whole.tolist(), fraction.tolist(), strict=True)
    ]
    assert strings.to_pylist() == [None if m else e for m, e in zip(mask, expected, strict=True)]


def test_counts_of_digits_change_at_powers_of_ten() -> None:
    values = np.array([0, 1, 9, 10, 99, 100, 10**18 - 1, 10**18, 2**63 - 1])
    assert digit_counts(values).tolist() == [0, 1, 1, 2, 2, 3, 18, 19, 19]


def test_a_layout_without_digits_is_the_text() -> None:
    cells = digit_cells(np.array([12, 3]), np.array([0, 0]), 0)
    strings = filled_layouts(np.array([-1, 1]), lambda key: "##" if key < 0 else DIGIT, cells, None)
    assert strings.to_pylist() == ["##", "3"]
