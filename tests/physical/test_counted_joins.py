"""``count(*)`` of joins: the pairs are counted and not made, however many there are."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.physical.joins.join_table import JoinTable

ROWS = 20_000
LEFT = [1] * ROWS + [2, 2, None]
RIGHT = [1] * ROWS + [3, None, None]
JOINS = {
    "CROSS JOIN b": (ROWS + 3) ** 2,
    "JOIN b ON a.k = b.k": ROWS**2,
    "LEFT JOIN b ON a.k = b.k": ROWS**2 + 3,
    "RIGHT JOIN b ON a.k = b.k": ROWS**2 + 3,
    "FULL JOIN b ON a.k = b.k": ROWS**2 + 6,
    "JOIN b ON a.k <=> b.k": ROWS**2 + 2,
    "LEFT SEMI JOIN b ON a.k = b.k": ROWS,
    "LEFT ANTI JOIN b ON a.k = b.k": 3,
}


@pytest.fixture
def context() -> kq.ExecutionContext:
    context = kq.ExecutionContext(config=EngineConfig(parallelism=1))
    context.register_arrow("a", pa.table({"k": pa.array(LEFT, pa.int64())}))
    context.register_arrow("b", pa.table({"k": pa.array(RIGHT, pa.int64())}))
    return context


@pytest.mark.parametrize("join", JOINS)
def test_pairs_are_counted_and_not_made(
    context: kq.ExecutionContext, monkeypatch: pytest.MonkeyPatch, join: str
) -> None:
    made: list[int] = []
    matches = JoinTable.matches

    def counted(self: JoinTable, codes: Any, counts: Any) -> Any:
        made.append(int(counts.sum()))
        return matches(self, codes, counts)

    monkeypatch.setattr(JoinTable, "matches", counted)
    for columns in ("count(*)", "count(1)"):
        rows = context.sql(f"SELECT {columns} AS c FROM a {join}").to_arrow().to_pylist()
        assert rows == [{"c": JOINS[join]}]
    assert sum(made) <= 2 * 2_000_000  # marks of build rows may need the pairs, where these are few


def test_rows_without_columns_feed_other_operators(context: kq.ExecutionContext) -> None:
    sql = "SELECT count(*) AS c, sum(x) AS s FROM (SELECT 2 AS x FROM a JOIN b ON a.k = b.k LIMIT 5000000)"
    assert context.sql(sql).to_arrow().to_pylist() == [{"c": 5_000_000, "s": 10_000_000}]
    union = "SELECT count(*) AS c FROM (SELECT 1 FROM a CROSS JOIN b UNION ALL SELECT 1 FROM a)"
    assert context.sql(union).to_arrow().to_pylist() == [{"c": (ROWS + 3) ** 2 + ROWS + 3}]
