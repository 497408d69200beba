"""The queries derived from TPC-H and TPC-DS, from our SQL frontend in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.suites import SUITES
from tests.frontends.sql.analyzer.engine import Tables, analyzed, rows, run

TPCH = sorted((Path(__file__).parents[4] / "benchmarks" / "queries" / "tpch").glob("q*.sql"))


@pytest.fixture(scope="module")
def tpch(spark: Any, tpch_dir: Path) -> Tables:
    for file in tpch_dir.glob("*.parquet"):
        spark.read.parquet(str(file)).createOrReplaceTempView(file.stem)
    return Tables(directory=tpch_dir)


@pytest.mark.parametrize("file", TPCH, ids=lambda f: f.stem)
def test_a_tpch_query_answers_as_spark_does(file: Path, spark: Any, tpch: Tables):
    sql = file.read_text().strip().rstrip(";")
    names, table = run(sql, tpch)
    expected = spark.sql(sql).toArrow()
    assert list(names) == expected.column_names
    assert table.schema.types == expected.schema.types
    assert rows(table) == rows(expected)


def test_every_tpcds_query_is_understood(tmp_path_factory: pytest.TempPathFactory):
    pytest.importorskip("duckdb_extension_tpcds")
    directory = tmp_path_factory.mktemp("tpcds")
    SUITES["tpcds"].data(directory, 0.01)
    tables = Tables(directory=next(p.parent for p in directory.rglob("item.parquet")))
    count = 0
    for query in SUITES["tpcds"].queries():
        analyzed(query.sql, tables)
        count += 1
    assert count == 99
