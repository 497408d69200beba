"""Every cast and every registered function gives Spark's answers on generated arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyspark
import pytest

from kquery_spark.expr import Column
from kquery_spark.frontends.catalyst.versions import CAST
from kquery_spark.functions.casts import CAST_CHANGES
from kquery_spark.functions.math.math_functions import _require_arrow_kernel
from kquery_spark.functions.registry import COLUMN, Nullability, functions
from kquery_spark.spark_bridge.session.versions import patch_version
from kquery_spark.types import names as t
from tests.conftest import SPARK_VERSION
from tests.functions.cases import ALL
from tests.functions.oracle import Oracle
from tests.functions.parity import Case, Lit, check, rows_of

OTHER_TYPES_IN_3_5 = {"timestampadd", "dayname", "monthname", "eq", "lt", "gteq"}
# Of a value that is not NULL; later releases say that the result may be NULL.
NEVER_NULL_IN_3_5 = {"to_binary"}


@pytest.fixture(scope="module")
def answers(spark: Any, loops: None, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Any]:
    """Spark's answers to all cases, asked for once."""
    asked = [case for case in ALL if has_kernel(case) and stays_with_spark(case) is None]
    return Oracle(spark, tmp_path_factory.mktemp("parity")).ask(asked)


def has_kernel(case: Case) -> bool:
    """Whether the pyarrow that is installed has the kernel of the case's function."""
    return _require_arrow_kernel(case.function) is None


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in ALL])
def test_same_answer_as_spark(case: Case, answers: dict[int, Any]) -> None:
    if not has_kernel(case):
        pytest.skip("is not supported, as this pyarrow has no such kernel")
    declined = stays_with_spark(case)
    if declined is not None:
        pytest.skip(f"stays with this Spark, which {declined}")
    if SPARK_VERSION < (4, 0) and case.function in OTHER_TYPES_IN_3_5:
        pytest.skip("Spark 3.5 has no such function, or casts the arguments to other types first")
    answer = answers[id(case)]
    if SPARK_VERSION < (4, 0) and case.function in NEVER_NULL_IN_3_5:
        case = replace(case, check_nullable=False)
    assert check(case, answer) == []


def test_functions_with_any_argument_return_null_for_null(answers: dict[int, Any]) -> None:
    """ANY_ARGUMENT must be exact: it lets outer joins become inner joins, and kernels run on dictionaries."""
    wrong, checked_rows = set(), 0
    for case in ALL:
        entry, answer = functions().get(case.function), answers.get(id(case))
        if entry is None or answer is None or entry.operator.connective:
            continue
        if entry.nullable is not Nullability.ANY_ARGUMENT:
            continue
        rows = rows_of(case)[: len(answer.values)]
        has_null_literal = any(isinstance(a, Lit) and a.value is None for a in case.args)
        for row, is_valid, error in zip(
            rows, answer.values.is_valid().to_pylist(), answer.errors, strict=False
        ):
            if error is None and (has_null_literal or None in row):
                checked_rows += 1
                if is_valid:
                    wrong.add(f"{case.name} {row}")
    assert checked_rows
    assert not wrong


def stays_with_spark(case: Case) -> str | None:
    """What this release of Spark answers otherwise than the engine, so that it keeps the call."""
    if SPARK_VERSION < (4, 1) and any(a.dtype == t.TIME for a in case.args):
        return "has no times"
    release = patch_version(pyspark.__version__)
    assert release is not None
    entry = functions().get(case.function)
    if case.function == CAST:
        types = [*(a.dtype for a in case.args), case.expr([Column("a", a.dtype) for a in case.columns]).dtype]
    else:
        types = [a.dtype for a in case.args]
    for change in CAST_CHANGES if entry is None else entry.changes:
        values = [a.value if isinstance(a, Lit) else COLUMN for a in case.args]
        if change.is_before(release) and (change.concerns is None or change.concerns(types, values)):
            return change.how
    return None


def test_every_function_has_a_parity_case() -> None:
    covered = {c.function for c in ALL}
    missing = sorted(set(functions()) - covered)
    assert not missing, f"functions without a parity case: {', '.join(missing)}"
