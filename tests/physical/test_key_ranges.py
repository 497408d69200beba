"""Ranges of keys keep the order of the engine's own sort, whatever the type, the form, the direction and the place of NULLs."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquery_spark.expr import Column, SortKey
from kquery_spark.physical.key_ranges import range_ids, range_values
from kquery_spark.physical.sorting.external_sort import sort_order
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Vector

WIDE = pa.decimal128(38, 2)
BIG = Decimal(10) ** 30
CASES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bigint": (pa.int64(), [0, 1, -1, 7, 2**63 - 1, -(2**63)]),
    "tinyint": (pa.int8(), [0, 5, -128, 127]),
    "boolean": (pa.bool_(), [True, False]),
    "double": (pa.float64(), [0.0, -0.0, 1.5, -2.5, math.inf, -math.inf, math.nan]),
    "float": (pa.float32(), [0.0, -0.0, 1.5, -2.5, math.inf, math.nan]),
    "string": (pa.string(), ["", "a", "ab", "a\0", "é", "\uffff", "😀", "abcdefghi", "abcdefgh"]),
    "binary": (pa.binary(), [b"", b"\xff", b"a", b"a\0", b"\x80"]),
    "date": (pa.date32(), [0, -1, 20_000, 1]),
    "timestamp": (pa.timestamp("us", "UTC"), [0, -1, 10**15, 1]),
    "short decimal": (pa.decimal128(12, 2), [Decimal("1.25"), Decimal("-3.00"), Decimal(0), Decimal("9.99")]),
    "long decimal": (WIDE, [Decimal(0), Decimal("-1.50"), Decimal("2.25"), BIG, -BIG, BIG + 1]),
}


def vectors(dtype: pa.DataType, values: list[Any]) -> list[Vector]:
    """The values in every form that columns have."""
    plain = pa.array(values, dtype)
    found = [Vector(dtype, plain), Vector(dtype, pa.array([values[-1], *values], dtype).slice(1))]
    if dtype == pa.string():
        found.append(Vector(dtype, plain.dictionary_encode()))
    if pa.types.is_decimal(dtype) and all(v is None or abs(v) < 10**15 for v in values):
        digits = [None if v is None else int(v.scaleb(dtype.scale)) for v in values]
        found.append(Vector(dtype, pa.array(digits, pa.int64())))
    return found


@pytest.mark.parametrize("kind", CASES)
@given(data=st.data(), ascending=st.booleans(), nulls_first=st.booleans())
def test_ranges_are_in_the_order_of_a_sort(
    kind: str, data: st.DataObject, ascending: bool, nulls_first: bool
) -> None:
    dtype, known = CASES[kind]
    values = data.draw(st.lists(st.sampled_from([*known, None]), min_size=1, max_size=30))
    firsts = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=4))
    found = range_values(Vector(dtype, pa.array(firsts, dtype)))
    bounds = sorted(set(found.tolist() if isinstance(found, np.ndarray) else found.to_pylist()), key=_bytes)
    seen = []
    for vector in vectors(dtype, values):
        batch = Batch(pa.schema([("k", dtype)]), (vector.data,), len(values))
        order = sort_order(batch, [SortKey(Column("k", dtype), ascending, nulls_first)])
        ids = range_ids(vector, len(values), bounds, not ascending, not nulls_first)
        assert ids.min() >= 0 and ids.max() <= len(bounds)
        assert (np.diff(ids[order]) >= 0).all()
        seen.append(ids.tolist())
    assert all(ids == seen[0] for ids in seen)


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def test_a_bound_is_the_first_key_of_its_range() -> None:
    numbers = Vector(pa.int64(), pa.array([9, 10, 11, None, 20]))
    assert range_ids(numbers, 5, (10, 20)).tolist() == [0, 1, 1, 0, 2]
    assert range_ids(numbers, 5, (10, 20), descending=True, nulls_last=True).tolist() == [2, 1, 1, 2, 0]
    strings = Vector(pa.string(), pa.array(["b", "a", None, "ba"]).dictionary_encode())
    assert range_ids(strings, 4, ("b", "c")).tolist() == [1, 0, 0, 1]


def test_a_key_that_is_one_value_for_all_rows() -> None:
    assert range_ids(Vector(pa.string(), pa.scalar("m")), 3, ("b", "x")).tolist() == [1, 1, 1]
    assert range_ids(Vector(pa.string(), pa.scalar(None, pa.string())), 2, ("b",), False, True).tolist() == [
        1,
        1,
    ]


def test_a_dictionary_of_nothing() -> None:
    nothing = pa.array([None, None], pa.string()).dictionary_encode()
    assert range_ids(Vector(pa.string(), nothing), 2, ("b",)).tolist() == [0, 0]
