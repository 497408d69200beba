"""Aggregations of one row each over the same tables are read in one scan, and give Spark's answer."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.accelerate.checks import check
from tests.conftest import settings

SHUFFLED = {"spark.kquery.smallBytes": "0", "spark.kquery.splitBytes": "20000"}


@pytest.fixture(scope="module")
def visits(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """4,000 visits of 50 places; every column of visits has NULLs."""
    rng = np.random.default_rng(7)
    n = 4_000
    directory: Path = tmp_path_factory.mktemp("visits")
    tables = {
        "visits": {
            "place": pa.array(rng.integers(0, 60, n), mask=rng.random(n) < 0.1),
            "hour": pa.array(rng.integers(0, 24, n, dtype=np.int32), mask=rng.random(n) < 0.1),
            "paid": pa.array(rng.integers(-500, 10_000, n), mask=rng.random(n) < 0.2)
            .cast(pa.decimal128(21, 2))
            .cast(pa.decimal128(9, 2)),
            "note": pa.array([f"note {i % 30}" for i in range(n)], mask=rng.random(n) < 0.1),
        },
        "places": {"place": pa.array(range(50)), "kind": [f"k{i % 4}" for i in range(50)]},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), directory / f"{name}.parquet", row_group_size=500)
        spark.read.parquet(str(directory / f"{name}.parquet")).createOrReplaceTempView(name)
    return spark


JOINED = "FROM visits v JOIN places p ON v.place = p.place"


@pytest.mark.parametrize("how", [{}, SHUFFLED], ids=["one task", "shuffled"])
@pytest.mark.parametrize(
    ("sql", "scans"),
    [
        # different conditions, one is NULL for some rows, one is true for no row
        (
            """SELECT * FROM (SELECT count(*) a, sum(paid) b FROM visits WHERE hour < 6 OR note = 'note 3'),
            (SELECT avg(paid) c, max(note) d FROM visits WHERE hour BETWEEN 6 AND 11),
            (SELECT count(paid) e, min(paid) f, sum(paid) g FROM visits WHERE hour > 99)""",
            1,
        ),
        # one of them asks for all rows
        ("SELECT a, b / a FROM (SELECT count(*) a FROM visits), (SELECT count(*) b FROM visits WHERE hour = 3)", 1),
        # conditions of their own beside those of calls
        (
            """SELECT * FROM (SELECT count(*) FILTER (WHERE paid > 50) a FROM visits WHERE hour < 6),
            (SELECT stddev(paid) FILTER (WHERE paid > 0) b, bool_or(hour = 7) c FROM visits WHERE hour >= 6)""",
            1,
        ),
        # the same joins, written the other way round, and a condition that both have
        (
            f"""SELECT * FROM (SELECT count(*) a {JOINED} WHERE hour < 6 AND kind <> 'k1'),
            (SELECT sum(paid) b FROM places q JOIN visits w ON q.place = w.place WHERE 'k1' <> kind AND hour IN (7, 9))""",
            2,
        ),
        # conditions of two tables: each is worth a scan of its own
        (
            f"""SELECT * FROM (SELECT count(*) a {JOINED} WHERE hour < 6),
            (SELECT count(*) b {JOINED} WHERE kind = 'k2')""",
            4,
        ),
        # a condition that can raise must see no other's rows
        (
            """SELECT * FROM (SELECT count(*) a FROM visits WHERE hour > 0 AND 24 / hour > 3),
            (SELECT count(*) b FROM visits WHERE hour = 0)""",
            2,
        ),
        # scalar subqueries
        (
            """SELECT kind, (SELECT count(*) FROM visits WHERE hour < 6) a, (SELECT max(paid) FROM visits WHERE hour > 20) b,
            CASE WHEN (SELECT avg(paid) FROM visits WHERE hour = 3) > 1 THEN 'much' ELSE 'little' END c
            FROM places WHERE place < 3""",
            2,
        ),
        ("SELECT * FROM (SELECT count(DISTINCT hour) a FROM visits), (SELECT count(*) b FROM visits WHERE hour = 3)", 1),
    ],
)  # fmt: skip
def test_one_scan_answers_all(visits: SparkSession, sql: str, scans: int, how: dict[str, str]) -> None:
    with settings(visits, how):
        frame = visits.sql(sql)
        text = str(kq.explain(frame.transform(kquery_plan, when="always")))
        check(frame, coverage=1.0)
    assert len(re.findall("ScanExec: (visits|places)", text)) == scans, text
