"""The elements of list arrays: of slices, with NULL rows that hide elements, and of another child."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kquery_spark.kernels.elements import elements

OFFSETS = pa.array([0, 2, 2, 5, 6, 9], pa.int32())
VALUES = pa.array(["a", None, "c", "d", "e", "f", "g", None, "i"])
NULL_ROWS = {
    "no NULL": None,
    "NULL without elements": [1],
    "first hides elements": [0],
    "middle hides elements": [2],
    "last hides elements": [4],
    "all NULL": [0, 1, 2, 3, 4],
}
"""The rows that are NULL. All of them but row 1 have elements in the child."""


def lists(null_rows: list[int] | None) -> pa.ListArray:
    mask = None if null_rows is None else pa.array([i in null_rows for i in range(5)])
    return pa.ListArray.from_arrays(OFFSETS, VALUES, mask=mask)


@pytest.mark.parametrize("name", NULL_ROWS)
@pytest.mark.parametrize(("start", "length"), [(0, 5), (1, 4), (2, 1), (0, 1), (4, 1), (5, 0), (2, 2)])
def test_elements_of_a_slice(name: str, start: int, length: int) -> None:
    array = lists(NULL_ROWS[name]).slice(start, length)
    rows = array.to_pylist()
    found = elements(array)
    assert found.values.to_pylist() == [value for row in rows for value in row or ()]
    assert found.rows.tolist() == [i for i, row in enumerate(rows) for _ in row or ()]
    assert found.sizes.tolist() == [len(row or ()) for row in rows]
    assert found.nulls.tolist() == [row is None for row in rows]
    upper = pa.array([value and value.upper() for value in VALUES.to_pylist()])
    of_child = elements(array, upper).values.to_pylist()
    assert of_child == [value and value.upper() for value in found.values.to_pylist()]
