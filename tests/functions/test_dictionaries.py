"""Strings held as dictionaries: what is found out for each value holds for its rows, NULL rows and NULL values among them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.expr import Column, InList, Literal
from kquery_spark.physical.expr import Program
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import gather

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("hits", [0, 1, 3, 4, 5, 9, 16, 17, 20])
@pytest.mark.parametrize("nulls", [False, True])
def test_flags_of_values_become_flags_of_rows(hits: int, nulls: bool):
    flags = pa.array(RNG.permutation(np.arange(20) < hits))
    codes = pa.array(RNG.integers(0, 20, 500).astype(np.int32), mask=RNG.random(500) < 0.1 if nulls else None)
    assert gather(flags, codes).equals(flags.take(codes))
    assert gather(flags, codes[3:50]).equals(flags.take(codes[3:50]))


def test_unknown_values_give_unknown_rows():
    flags = pa.array([True, None, False])
    codes = pa.array([0, 1, 2, None, 1] * 3, pa.int32())
    assert gather(flags, codes).to_pylist() == [True, None, False, None, None] * 3


@pytest.mark.parametrize("values", [("b",), ("a", "c"), ("x",), ("a", None), (None,)])
@pytest.mark.parametrize("dictionary", [["a", "b", "c"], ["a", None, "c"], ["c", "c", "b"]])
def test_in_lists_over_dictionaries_are_those_over_strings(
    values: tuple[str | None, ...], dictionary: list[str | None]
):
    codes = pa.array([0, 1, 2, None, 2, 1, 0, 0], pa.int32())
    held = pa.DictionaryArray.from_arrays(codes, pa.array(dictionary))
    schema = pa.schema([("s", pa.string())])
    test = InList(Column("s", pa.string(), True), tuple(Literal(w, pa.string()) for w in values))
    found, expected = (
        Program([test], schema).run(Batch(schema, (data,), 8))[0].data
        for data in (held, held.cast(pa.string()))
    )
    assert found.to_pylist() == expected.to_pylist()
