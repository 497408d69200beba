"""Choosing between slices of strings and NULL, which pyarrow before 24 gets wrong by itself."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kquery_spark.kernels import text
from kquery_spark.kernels.text import if_else


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("dtype", [pa.string(), pa.binary()])
def test_a_slice_beside_null(old: bool, dtype: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    if old:
        monkeypatch.setattr(text, "_MISREADS_SLICES", True)
    words = pa.array(["unused", "a", "bcd", None, "", "efg"]).cast(dtype).slice(1)
    test, null = pa.array([True, False, True, None, True]), pa.scalar(None, dtype)
    a, bcd, empty, efg = (words[i].as_py() for i in (0, 1, 3, 4))
    chosen, other = if_else(test, words, null), if_else(test, null, words)
    chosen.validate(full=True)
    other.validate(full=True)
    assert chosen.to_pylist() == [a, None, None, None, efg]
    assert other.to_pylist() == [None, bcd, None, None, None]
    assert if_else(pa.array([False] * 5), null, words).to_pylist() == [a, bcd, None, empty, efg]
    assert if_else(pa.scalar(True), words, null).to_pylist() == words.to_pylist()
