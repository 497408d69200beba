"""Every cast and every registered function gives Spark's answers on generated arguments."""

from __future__ import annotations

from typing import Any

import pytest

from kquery_spark.functions.registry import functions
from tests.conftest import SPARK_BEFORE_4_3
from tests.functions.cases import ALL
from tests.functions.oracle import Oracle
from tests.functions.parity import Case, check

#: Functions that Spark 4.2 answers otherwise: with other errors, on which it is asked again, or (slice) as a whole.
CHANGED_IN_4_3 = {
    "ceil: ceil(#) over (double)",
    "floor: floor(#) over (double)",
    "make_date: make_date(#, #, #) over (int,int,int)",
    "make_timestamp: make_timestamp(#, #, #, #, #, #) over (int,int,int,int,int,decimal(16,6))",
    r"translate: translate(#, 'a', '\0') over (string)",
    r"translate: translate(#, 'ba', 'x\0') over (string)",
    "translate: translate(#, #, #) over (string,string,string)",
    "slice: slice(#, #, #) over (array<bigint>,int,int)",
}


@pytest.fixture(scope="module")
def answers(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Any]:
    """Spark's answers to all cases, asked for once."""
    return Oracle(spark, tmp_path_factory.mktemp("parity")).ask(ALL)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in ALL])
def test_same_answer_as_spark(case: Case, answers: dict[int, Any]) -> None:
    if SPARK_BEFORE_4_3 and case.name in CHANGED_IN_4_3:
        pytest.skip("Spark 4.3 answers otherwise")
    assert check(case, answers[id(case)]) == []


def test_every_function_has_a_parity_case() -> None:
    covered = {c.function for c in ALL}
    missing = sorted(set(functions()) - covered)
    assert not missing, f"functions without a parity case: {', '.join(missing)}"
