"""Every cast and every registered function gives Spark's answers on generated arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kquery_spark.functions.registry import COLUMN, functions
from tests.conftest import SPARK_BEFORE_4_3, SPARK_VERSION
from tests.functions.cases import ALL
from tests.functions.oracle import Oracle
from tests.functions.parity import Case, Lit, check
from tests.matrix import DECLINED

#: Cases in which Spark 4.2 raises another error.
OTHER_ERRORS_IN_4_2 = {
    "ceil: ceil(#) over (double)",
    "floor: floor(#) over (double)",
    "make_date: make_date(#, #, #) over (int,int,int)",
    "make_timestamp: make_timestamp(#, #, #, #, #, #) over (int,int,int,int,int,decimal(16,6))",
}


@pytest.fixture(scope="module")
def answers(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Any]:
    """Spark's answers to all cases, asked for once."""
    return Oracle(spark, tmp_path_factory.mktemp("parity")).ask(ALL)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in ALL])
def test_same_answer_as_spark(
    case: Case, answers: dict[int, Any], record_property: Callable[[str, object], None]
) -> None:
    declined = stays_with_spark(case)
    if declined is not None:
        record_property(DECLINED, declined)
        return
    if SPARK_BEFORE_4_3 and case.name in OTHER_ERRORS_IN_4_2:
        pytest.skip("Spark 4.3 raises another error")
    assert check(case, answers[id(case)]) == []


def stays_with_spark(case: Case) -> str | None:
    """What this release of Spark answers otherwise than the engine, so that it keeps the call."""
    entry = functions().get(case.function)
    for change in () if entry is None else entry.changes:
        values = [a.value if isinstance(a, Lit) else COLUMN for a in case.args]
        if change.since > SPARK_VERSION and (
            change.concerns is None or change.concerns([a.dtype for a in case.args], values)
        ):
            return change.how
    return None


def test_every_function_has_a_parity_case() -> None:
    covered = {c.function for c in ALL}
    missing = sorted(set(functions()) - covered)
    assert not missing, f"functions without a parity case: {', '.join(missing)}"
