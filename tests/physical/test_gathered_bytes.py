"""Joins and generators that repeat long strings: they copy a limited number of bytes at once."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.physical import gathering
from tests.physical.harness import assert_same_rows
from tests.support.memory import MEGABYTES, peak_memory

ROWS = 400
TABLES = {
    "long": pa.table(
        {
            "k": pa.array([None if i % 50 == 7 else i % 5 for i in range(ROWS)]),
            "s": [f"{i} ".ljust(20_000, "s") if i % 40 == 0 else f"short {i}" for i in range(ROWS)],
        }
    ),
    "wide": pa.table({"i": list(range(4000)), "j": [i % 7 for i in range(4000)]}),
}
JOINS = [
    "SELECT s, i FROM long JOIN wide ON k = j",
    "SELECT s, i FROM long LEFT JOIN wide ON k = j AND i % 40 < 3",
    "SELECT s, i FROM long FULL JOIN wide ON k = j AND length(s) > i + 9000",
    "SELECT s, i FROM wide CROSS JOIN (SELECT * FROM long WHERE k = 1) AS few",
    "SELECT s, i, k FROM wide RIGHT JOIN long ON length(s) < i + 100",
    "SELECT s FROM long LEFT SEMI JOIN wide ON length(s) < i + 100",
]
GENERATORS = [
    "SELECT s, explode(sequence(1, 40)) AS e FROM long",
    "SELECT k, e, s FROM long LATERAL VIEW OUTER explode(filter(array(1, 2, 3), x -> x < k)) AS e",
    "SELECT s, explode(array(k, 2, k + 1)) AS e FROM long",
]


@pytest.mark.parametrize("query", [*JOINS, *GENERATORS])
def test_the_limit_does_not_change_the_result(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    context = kq.ExecutionContext()
    for name, table in TABLES.items():
        context.register_arrow(name, table.slice(0, 500))
    expected = context.sql(query).to_arrow()
    monkeypatch.setattr(gathering, "MAX_GATHERED_BYTES", 30_000)
    assert_same_rows(context.sql(query).to_arrow(), expected)


LARGE = [
    "SELECT sum(length(s) + i) AS n FROM (SELECT * FROM long WHERE k = 0) CROSS JOIN wide",
    "SELECT sum(length(s) + i) AS n FROM long JOIN wide ON k + 1000 = i OR length(concat(s, i)) > 6",
    "SELECT sum(length(s) + e) AS n FROM (SELECT s, explode(sequence(1, 3000)) AS e FROM long)",
]


@pytest.mark.parametrize("query", LARGE)
def test_memory_for_long_strings_is_bounded(query: str) -> None:
    """Without a limit, the pairs of a batch have copies of 600 MB and more."""
    context = kq.ExecutionContext(config=EngineConfig(parallelism=1))
    long = TABLES["long"]
    strings = pa.array([f"{i} ".ljust(4000, "s") for i in range(ROWS)])
    context.register_arrow("long", long.set_column(1, "s", strings).slice(0, 200))
    context.register_arrow("wide", TABLES["wide"])
    context.sql("SELECT count(*) FROM long JOIN wide ON k = i").to_arrow()
    with peak_memory() as peak:
        assert context.sql(query).to_arrow().num_rows == 1
    assert peak.nbytes < 500 * MEGABYTES
