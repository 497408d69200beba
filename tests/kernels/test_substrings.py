"""Searching the bytes of many strings at once finds what searching each string finds."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquery_spark.kernels.substrings import contains, matches

LETTERS = st.sampled_from("abcé😀")  # one, two and four bytes, few enough to meet by chance
STRINGS = st.lists(st.none() | st.text(LETTERS, max_size=30), max_size=30)


@given(STRINGS, st.text(LETTERS, min_size=1, max_size=7), st.integers(0, 5))
def test_contains_is_arrows(strings: list[str | None], needle: str, start: int) -> None:
    data = pa.array(strings, pa.string())[start:]
    assert contains(data, needle).equals(pc.match_substring(data, needle))


@given(STRINGS, st.lists(st.text(LETTERS, min_size=1, max_size=5), min_size=1, max_size=3))
def test_matches_is_arrows(strings: list[str | None], literals: list[str]) -> None:
    data = pa.array(strings, pa.string())
    regex = rf"(?s)\A.*{'.*'.join(literals)}.*\z"
    assert matches(data, regex, literals).equals(pc.match_substring_regex(data, regex))


@pytest.mark.parametrize(
    "strings", [["abcd", "ab", "cd", "abcdabcd"], ["xabc", "dx"], ["", "abcd", ""], [None]]
)
def test_nothing_is_found_across_two_strings(strings: list[str | None]) -> None:
    data = pa.array(strings, pa.string())
    assert contains(data, "abcd").to_pylist() == [None if s is None else "abcd" in s for s in strings]


def test_a_string_that_nearly_all_have() -> None:
    data = pa.array(["one special request", "special", "none"] * 9)
    found = matches(data, r"(?s)\A.*special.*request.*\z", ["special", "request"])
    assert found.to_pylist() == [True, False, False] * 9
