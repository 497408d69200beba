"""Looking strings up: the same places as Arrow's, whichever way and however the hashes fall."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquery_spark.physical import bytes_index
from kquery_spark.physical.bytes_index import BytesIndex

STRINGS = ["", "a", "b", "ab", "a\0", "a\0\0", "\0", "ü", "a longer text of more than eight bytes", "x" * 100]


def places(values, data):
    found = pc.index_in(data, value_set=values)
    return found.fill_null(-1).to_pylist()


@given(
    st.lists(st.one_of(st.sampled_from(STRINGS), st.text(max_size=20)), unique=True, max_size=60),
    st.lists(st.one_of(st.none(), st.sampled_from(STRINGS), st.text(max_size=20)), max_size=20),
    st.integers(0, 3),
)
def test_places_are_those_of_arrow(values, expected, skipped):
    for dtype in (pa.string(), pa.binary()):
        made = pa.array([v if dtype == pa.string() else v.encode() for v in values], dtype)
        data = pa.array([w if w is None or dtype == pa.string() else w.encode() for w in expected], dtype)
        index = BytesIndex(made)
        for part in (data, data.slice(skipped)):
            assert index.lookup(part).tolist() == places(made, part)


def test_many_values_are_hashed_once(monkeypatch):
    values = pa.array([f"customer {i * 7919 % 100_003}" for i in range(50_000)])
    data = pa.array([f"customer {i}" for i in range(0, 100_003, 97)] + [None, ""])
    index = BytesIndex(values)
    calls = []
    hashed = bytes_index.hash_bytes
    monkeypatch.setattr(bytes_index, "hash_bytes", lambda d: calls.append(len(d)) or hashed(d))
    monkeypatch.setattr(bytes_index.pc, "index_in", None)
    found = [index.lookup(data).tolist() for _ in range(3)]
    monkeypatch.undo()
    assert found == [places(values, data)] * 3
    assert calls == [50_000, *[len(data)] * 3]


@pytest.mark.parametrize("by", [lambda v: 7, lambda v: ord(v[0])])
def test_equal_hashes_are_not_equal_values(monkeypatch, by):
    values = pa.array(["apple", "berry", "cherry", "date"])
    data = pa.array(["avocado", "berry"])
    monkeypatch.setattr(
        bytes_index, "hash_bytes", lambda d: np.array([by(v) for v in d.to_pylist()], np.uint64)
    )
    assert BytesIndex(values).lookup(data).tolist() == [-1, 1]
