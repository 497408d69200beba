"""Functions that run once for each combination of their arguments get the arguments of each row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.registry import CallContext
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector


def test_more_combinations_than_integers_of_64_bits():
    """Five columns of 20,000 distinct values have 3.2e21 combinations."""
    rows, random = 20_000, np.random.default_rng(5)
    columns = [random.permutation(rows) for _ in range(5)]
    columns[2] = columns[2] % 7
    args = [Vector(t.LONG, pa.array(column)) for column in columns]
    args.insert(3, Vector(t.LONG, pa.scalar(1, t.LONG)))
    calls = []

    def total(*values: int) -> int:
        calls.append(values)
        return sum(place * value for place, value in enumerate(values, 1))

    actual = per_distinct(total, args, CallContext(t.LONG, num_rows=rows))
    weights = (1, 2, 3, 5, 6)
    expected = sum(weight * column for weight, column in zip(weights, columns, strict=True)) + 4
    assert actual.to_pylist() == expected.tolist()
    assert len(calls) == rows


def test_rows_with_null_have_no_value_and_equal_rows_one_call():
    first = pa.array([1, None, 1, 2, 1], t.LONG)
    second = pa.array(["a", "b", "a", None, "c"]).dictionary_encode()
    calls = []

    def concatenated(number: int, string: str) -> str:
        calls.append((number, string))
        return f"{number}{string}"

    args = [Vector(t.LONG, first), Vector(t.STRING, second)]
    actual = per_distinct(concatenated, args, CallContext(t.STRING, num_rows=5))
    assert actual.to_pylist() == ["1a", None, "1a", None, "1c"]
    assert sorted(calls) == [(1, "a"), (1, "c")]
