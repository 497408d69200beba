"""Arguments that decide a row keep later ones from raising for it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kquery_spark.functions  # noqa: F401
from kquery_spark.errors import ExecutionError
from kquery_spark.expr import Call, Cast, Column, Expr, Literal
from kquery_spark.physical.expr.program import Program
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch

SCHEMA = pa.schema([("n", t.INT), ("s", t.STRING)])


def run(expr: Expr, numbers: list[int | None], strings: list[str | None]) -> list[object]:
    batch = Batch(SCHEMA, (pa.array(numbers, t.INT), pa.array(strings, t.STRING)), len(numbers))
    (vector,) = Program([expr], SCHEMA).run(batch)
    return list(vector.array(len(numbers)).to_pylist())


PARSED = Cast(Column("s", t.STRING), t.INT)


def test_coalesce_does_not_evaluate_what_an_earlier_argument_decides() -> None:
    expr = Call.of("coalesce", Column("n", t.INT), PARSED, Literal(-1, t.INT))
    assert run(expr, [1, None, None], ["bad", "7", None]) == [1, 7, -1]


def test_coalesce_raises_where_the_later_argument_is_needed() -> None:
    with pytest.raises(ExecutionError) as raised:
        run(Call.of("coalesce", Column("n", t.INT), PARSED), [None], ["bad"])
    assert raised.value.error_class == "CAST_INVALID_INPUT"


def test_a_null_first_operand_hides_errors_of_the_second() -> None:
    expr = Call.of("add", Column("n", t.INT), PARSED)
    assert run(expr, [None, 1], ["bad", "2"]) == [None, 3]
    with pytest.raises(ExecutionError):
        run(expr, [1], ["bad"])
