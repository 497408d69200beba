"""Searching the bytes of many strings at once finds what searching each string finds."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquery_spark.kernels import substrings
from kquery_spark.kernels.substrings import contains, contains_in_order, matches

LETTERS = st.sampled_from("abcé😀")  # one, two and four bytes, few enough to meet by chance
STRINGS = st.lists(st.none() | st.text(LETTERS, max_size=30), max_size=30)


@pytest.fixture(autouse=True, scope="module", params=["compiled", "numpy"])
def with_loops(request: pytest.FixtureRequest, kernels: ModuleType) -> Iterator[None]:
    """Run every test with the compiled loops and without them."""
    loops = kernels if request.param == "compiled" else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(substrings, "_loops", lambda offsets: loops)
        yield


@given(STRINGS, st.text(LETTERS, min_size=1, max_size=7), st.integers(0, 5))
def test_contains_is_arrows(strings: list[str | None], needle: str, start: int) -> None:
    data = pa.array(strings, pa.string())[start:]
    assert contains(data, needle).equals(pc.match_substring(data, needle))


@given(STRINGS, st.text("ab", min_size=1, max_size=3))
def test_strings_of_many_blocks(strings: list[str | None], needle: str) -> None:
    """Most blocks contain no match, and matches cross the ends of blocks and strings."""
    data = pa.array([s and s.replace("a", "x" * 40) + "ab" for s in strings], pa.string())
    assert contains(data, needle).equals(pc.match_substring(data, needle))


@given(
    STRINGS,
    st.lists(st.text(LETTERS, min_size=1, max_size=3), min_size=2, max_size=4),
    st.booleans(),
    st.booleans(),
    st.integers(0, 5),
)
def test_literals_in_order(
    strings: list[str | None], literals: list[str], is_prefix: bool, is_suffix: bool, start: int
) -> None:
    data = pa.array([s and s * 3 for s in strings], pa.string())[start:]
    regex = rf"(?s)\A{'' if is_prefix else '.*'}{'.*'.join(literals)}{'' if is_suffix else '.*'}\z"
    found = contains_in_order(data, literals, is_prefix, is_suffix)
    if len(data) == 0 or substrings._loops(substrings._buffers(data)[0]) is None:
        assert found is None
    else:
        assert found is not None
        assert found.equals(pc.match_substring_regex(data, regex))


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
