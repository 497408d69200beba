"""The coverage page: queries derived from TPC-DS run whole in the engine, and what does not is written down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kquery_spark as kq
from benchmarks.coverage import Line, Verdict, cover, page
from benchmarks.engines.spark import register
from benchmarks.suites import SUITES, Query

# One query for each thing that once stayed with Spark, and for each kind of operator.
QUERIES = ["5", "6", "23", "67", "70", "87"]


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The 24 tables without rows: enough to plan."""
    pytest.importorskip("duckdb_extension_tpcds")
    found = SUITES["tpcds"].data(tmp_path_factory.mktemp("tpcds"), 0)
    register(spark, found)
    yield found
    for table in found:
        spark.catalog.dropTempView(table.name)


@pytest.mark.parametrize("name", QUERIES)
def test_a_tpcds_query_is_planned_whole(spark: Any, tables: Any, name: str) -> None:
    (query,) = SUITES["tpcds"].chosen(name)
    explained = kq.explain(spark.sql(query.sql))
    assert (explained.coverage, explained.reasons) == (1.0, [])


def test_a_query_is_verified_in_both_ways(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(100).selectExpr("id % 7 AS k", "id AS v").repartition(2).write.parquet(path)
    line = cover(spark, Query("q", f"SELECT k, sum(v) FROM parquet.`{path}` GROUP BY k"))
    assert line == Line("q", 1.0, (), (Verdict(True, 7), Verdict(True, 7)))
    part = cover(
        spark, Query("p", f"SELECT * FROM (SELECT k, sum(v) s FROM parquet.`{path}` GROUP BY k) SORT BY s")
    )
    assert 0 < part.coverage < 1
    assert part.equal
    assert len(part.reasons) == 1


def test_errors_and_differences_are_reported() -> None:
    lines = [
        Line("1", 1.0, (), (Verdict(True, 1234), Verdict(True, 1234))),
        Line(
            "2",
            0.5,
            ("Sample: random | samples",),
            (Verdict(True, 1), Verdict(False, problem="stopped after 1 s")),
        ),
    ]
    text = page("tpcds", 0.1, lines)
    assert "--scale 0.1 --out docs/tpcds_coverage.md" in text
    assert "**1 of 2** queries run whole" in text
    assert "**1 of 2** give Spark's answer" in text
    assert "0 of these answers have no rows" in text
    assert "| 1 | 1.00 | yes | yes | 1,234 | |" in text
    assert "| 2 | 0.50 | yes | **no** | 1 | Sample: random \\| samples; stopped after 1 s |" in text
