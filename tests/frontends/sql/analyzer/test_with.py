"""Tables of WITH that are not deterministic: each computation can return different rows."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.errors import SqlError, Unsupported

TABLE = "WITH c AS (SELECT id, number(id) AS r FROM t)"


@pytest.fixture
def context() -> kq.ExecutionContext:
    numbers = itertools.count()
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"id": [1, 2, 3]}))
    context.register_function(
        "number", lambda xs: pa.array([next(numbers) for _ in xs]), "bigint", deterministic=False
    )
    context.register_function("same", lambda xs: xs, "bigint")
    return context


@pytest.mark.parametrize(
    "query",
    [
        f"{TABLE} SELECT count(*) FROM c AS a JOIN c AS b ON a.id = b.id AND a.r = b.r",
        f"{TABLE}, d AS (SELECT * FROM c) SELECT * FROM d UNION ALL SELECT * FROM d",
        f"{TABLE} SELECT * FROM c WHERE r IN (SELECT r FROM c)",
        "WITH c AS (SELECT id FROM t WHERE id IN (SELECT number(id) FROM t)) SELECT * FROM c UNION ALL SELECT * FROM c",
        "WITH RECURSIVE c AS (SELECT id AS n, number(id) AS r FROM t UNION ALL SELECT n + 1, number(n) FROM c WHERE n < 3)"
        " SELECT count(*) FROM c AS a JOIN c AS b ON a.n = b.n",
    ],
)
def test_several_uses_of_rows_that_are_not_deterministic_are_declined(
    context: kq.ExecutionContext, query: str
) -> None:
    with pytest.raises((Unsupported, SqlError), match=r"several uses of c, which is not deterministic"):
        context.sql(query)


def test_other_uses_are_not(context: kq.ExecutionContext) -> None:
    assert context.sql(f"{TABLE} SELECT count(*) AS n FROM c").to_arrow().to_pydict() == {"n": [3]}
    joined = TABLE.replace("number", "same") + " SELECT count(*) AS n FROM c AS a JOIN c AS b USING (id, r)"
    assert context.sql(joined).to_arrow().to_pydict() == {"n": [3]}


def test_assert_true_uses_its_argument_only_once(context: kq.ExecutionContext) -> None:
    query = f"{TABLE} SELECT assert_true((SELECT count(r) FROM c) = 3) AS a"
    assert context.sql(query).to_arrow().to_pydict() == {"a": [None]}
