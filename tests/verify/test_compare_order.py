"""Comparing as multisets: rows find their partners whatever the sizes of their numbers, and errors are not hidden."""

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.verify import compare_tables

NAN = float("nan")


@pytest.mark.parametrize(
    "values",
    [
        [745.0, 628.5, 1e9 + 0.25],
        [1e9, 1e9 + 0.25, None, 1e9 + 0.5],
        [NAN, None, float("inf"), float("-inf"), 0.0, 5e-324, 1.7e308],
        [1e-300, 2e-300, 0.0, -1e-300],
    ],
)
def test_rows_in_another_order_are_the_same(values):
    rng = np.random.default_rng(1)
    for _ in range(10):
        order = rng.permutation(len(values)).tolist()
        other = pa.table({"x": pa.array([values[i] for i in order], pa.float64()), "i": order})
        table = pa.table({"x": pa.array(values, pa.float64()), "i": list(range(len(values)))})
        assert compare_tables(table, other) == []
        assert compare_tables(table.select(["x"]), other.select(["x"])) == []


def test_last_digits_may_differ_and_more_may_not():
    a = pa.table({"x": [1.0, 1e6, 1.5, None], "y": [3.0, 0.1, 2.0, 4.0]})
    b = pa.table({"x": [1e6 * (1 + 1e-12), 1.5, None, 1.0], "y": [0.1, 2.0 * (1 - 1e-12), 4.0, 3.0]})
    assert compare_tables(a, b) == []
    c = pa.table({"x": [1e6 * (1 + 1e-8), 1.5, None, 1.0], "y": [0.1, 2.0, 4.0, 3.0]})
    assert compare_tables(a, c) != []
    swapped = pa.table({"x": [1.0, 1e6, 1.5, None], "y": [0.1, 3.0, 2.0, 4.0]})
    assert compare_tables(a, swapped) != []
    zero = pa.table({"x": [1.0, 1e6, 1.5, 0.0], "y": [3.0, 0.1, 2.0, 4.0]})
    assert compare_tables(a, zero) != []
