"""Functions over strings that are not valid UTF-8 give Spark's answers or decline them."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kquery_spark.kernels.utf8 import is_valid, java_string, strings_from_bytes
from tests.conftest import exhaustive
from tests.functions.cases import ALL
from tests.functions.invalid_strings import INVALID, Outcome, compare, strings_as_bytes, with_invalid_strings
from tests.functions.oracle import Oracle
from tests.functions.parity import Case
from tests.functions.test_parity import has_kernel, stays_with_spark

_DECLINED = {
    "interval_of_text",
    "to_number",
    "try_to_number",
    "map",
    "map_concat",
    "map_from_arrays",
    "map_from_entries",
}
"""Functions that may decline every invalid string."""


def _cases() -> list[Case]:
    """Return every call of a function with strings that are not valid UTF-8."""
    usable = (c for c in ALL if has_kernel(c) and stays_with_spark(c) is None)
    return list(filter(None, map(with_invalid_strings, usable)))


def _widest_cases() -> list[Case]:
    """Return one case per function: the one with the most columns."""
    widest = {c.function: c for c in sorted(_cases(), key=lambda case: len(case.columns))}
    return list(widest.values())


@pytest.fixture(scope="module")
def outcomes(spark: Any, loops: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """The engine's answers beside Spark's for one case of each function."""
    return _outcomes(spark, _widest_cases(), tmp_path_factory.mktemp("invalid"))


def _outcomes(spark: Any, cases: list[Case], directory: Path) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    with strings_as_bytes():
        answers = Oracle(spark, directory).ask(cases)
        for case in cases:
            compare(case, answers[id(case)], outcomes.setdefault(case.function, Outcome()))
    return outcomes


@pytest.mark.parametrize("function", sorted({c.function for c in _widest_cases()}))
def test_functions_answer_as_spark_does_or_decline(function: str, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[function]
    assert outcome.problems == []
    assert outcome.answered > outcome.declined or function in _DECLINED


@exhaustive
def test_every_case_answers_as_spark_does_or_declines(spark: Any, loops: None, tmp_path: Path) -> None:
    outcomes = _outcomes(spark, _cases(), tmp_path)
    assert {function: outcome.problems for function, outcome in outcomes.items() if outcome.problems} == {}


def test_java_strings_are_decoded_as_java_does(spark: Any, tmp_path: Any) -> None:
    """TRANSLATE goes through Java strings: every short string of bytes at the borders of UTF-8's ranges."""
    borders = bytes.fromhex("41 20 80 8f 90 9f a0 bf c1 c3 df e0 e9 ed ef f0 f1 f4 f5 f8 ff")
    rng = random.Random(1)
    values = [bytes(b) for size in (1, 2, 3) for b in itertools.product(borders, repeat=size)]
    values += [bytes(rng.choices(borders, k=rng.randint(4, 9))) for _ in range(20_000)]
    frame = spark.createDataFrame(pa.table({"b": pa.array(values, pa.binary())}))
    decoded = frame.selectExpr("translate(cast(b as string), '\\u0001', '') s").toArrow().column("s")
    assert decoded.to_pylist() == [java_string(value) for value in values]


@pytest.mark.parametrize("value", INVALID)
def test_validity_is_that_of_each_string(value: bytes) -> None:
    strings = strings_from_bytes([b"a", None, value, "é".encode()])
    assert not is_valid(strings)
    assert not is_valid(strings.dictionary_encode())
    assert not is_valid(strings[2])
    assert not is_valid(pa.StructArray.from_arrays([pa.ListArray.from_arrays([0, 4], strings)], ["l"]))
    assert is_valid(strings[:2]) and is_valid(strings[3:])
    assert not is_valid(strings_from_bytes([b"\xc3", b"\xa9"])), "both together would be valid"
