"""Ranks of strings are those of Python's bytes."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from kquery_spark.physical.sorting.text_order import text_ranks

LETTERS = [b"", b"a", b"b", b"\0", b"\xff", b"abcdefg", b"abcdefgh", b"abcdefghi", b"\0" * 8]
STRINGS = st.lists(st.sampled_from(LETTERS), max_size=5).map(b"".join)


def _expected(values: list[bytes]) -> list[int]:
    ordered = sorted(values)
    return [ordered.index(v) for v in values]


@given(st.lists(STRINGS, max_size=40), st.integers(0, 5), st.integers(0, 40))
@example([b"a" * 8, b"a" * 8 + b"b", b"a" * 8], 0, 3)
@example([b"a" * 8 + b"\0", b"a" * 8], 0, 2)
def test_ranks_of_slices(values: list[bytes], start: int, count: int) -> None:
    array = pa.array(values, pa.binary()).slice(start, count)
    assert text_ranks(array).tolist() == _expected(array.to_pylist())


@given(st.lists(st.text(max_size=12), max_size=30))
def test_ranks_of_strings(values: list[str]) -> None:
    assert text_ranks(pa.array(values, pa.string())).tolist() == _expected([v.encode() for v in values])


def test_long_strings_that_are_equal_for_long() -> None:
    values = [b"x" * 1000 + bytes([i % 3]) for i in range(50)] + [b"x" * 300] * 3 + [b"", b"x" * 256]
    assert text_ranks(pa.array(values, pa.binary())).tolist() == _expected(values)


def test_more_rows_than_are_looked_at_at_once() -> None:
    values = [f"{i * 7919 % 100_003:06d} and more".encode() for i in range(70_000)]
    ranks = text_ranks(pa.array(values, pa.binary()))
    assert [values[i] for i in ranks.argsort()] == sorted(values)
    assert len(set(ranks.tolist())) == len(values)


def test_nulls_do_no_harm() -> None:
    ranks = text_ranks(pa.array(["b", None, "a", "b"]))
    assert ranks[2] < ranks[0] == ranks[3]
