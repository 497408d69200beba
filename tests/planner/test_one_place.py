"""Sides of joins that one task needs: read from the stages that it reads anyway, else computed by that task."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig

RNG = np.random.default_rng(9)
SALES = pa.table({"k": RNG.integers(0, 20, 5000), "v": RNG.integers(0, 9, 5000)})
NAMES = pa.table({"k": range(20), "name": [f"n{i}" for i in range(20)]})
TWO_TASKS = EngineConfig(parallelism=2, small_bytes=-1)
ONE_TASK = EngineConfig(parallelism=2)
TOTALS = "WITH t AS (SELECT k, sum(v) AS s FROM sales GROUP BY k)"


def frame(sql: str, config: EngineConfig) -> kq.DataFrame:
    context = kq.ExecutionContext(config=config)
    context.register_arrow("sales", SALES)
    context.register_arrow("names", NAMES)
    return context.sql(sql)


@pytest.mark.parametrize(
    ("sql", "stages", "scans"),
    [
        # what is in the query twice is computed once
        (f"{TOTALS} SELECT a.k, a.s, b.s AS r FROM t a JOIN t b ON a.k = b.k + 1", 2, 1),
        (f"{TOTALS} SELECT a.k, a.s FROM t a JOIN (SELECT max(s) AS m FROM t) b ON a.s = b.m", 2, 1),
        (f"{TOTALS} SELECT a.s, name FROM t a JOIN (SELECT t.s, name FROM t JOIN names n ON t.k = n.k) b ON a.s = b.s", 2, 2),
        # another aggregation would need a stage of its own
        ("SELECT a.n, b.m FROM (SELECT sum(k) n FROM sales WHERE v < 4) a, (SELECT max(name) m FROM names) b", 2, 2),
        # unless both are one
        ("SELECT a.n, b.m FROM (SELECT sum(k) n FROM sales WHERE v < 4) a, (SELECT max(v) m FROM sales) b", 2, 1),
        # a small table is read by the one task that needs it
        (f"{TOTALS} SELECT name, s FROM t JOIN names ON t.k = names.k", 2, 2),
    ],
)  # fmt: skip
def test_stages_and_scans(sql: str, stages: int, scans: int) -> None:
    spread = frame(sql, TWO_TASKS)
    text = spread.explain().split("== Stages ==")[1]
    assert (text.count("task(s)"), text.count("ScanExec")) == (stages, scans)
    expected = sorted(map(repr, frame(sql, ONE_TASK).collect()))
    assert expected and sorted(map(repr, spread.collect())) == expected
