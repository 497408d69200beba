"""Sides of joins that one task needs: made by all tasks before it where that is much work, read by it where it is little."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig

RNG = np.random.default_rng(9)
SALES = pa.table({"k": RNG.integers(0, 20, 5000), "v": RNG.integers(0, 9, 5000)})
NAMES = pa.table({"k": range(20), "name": [f"n{i}" for i in range(20)]})
# bytes below which a side is little: a quarter of small_bytes
MUCH = EngineConfig(parallelism=2, small_bytes=16 * 1024)
LITTLE = EngineConfig(parallelism=2, small_bytes=SALES.nbytes // 2)
ONE_TASK = EngineConfig(parallelism=2)


def frame(sql: str, config: EngineConfig) -> kq.DataFrame:
    context = kq.ExecutionContext(config=config)
    context.register_arrow("sales", SALES)
    context.register_arrow("names", NAMES)
    return context.sql(sql)


@pytest.mark.parametrize(
    ("sql", "stages", "scans"),
    [
        # both totals by all tasks, a stage each and one that joins them
        ("SELECT a.n, b.m FROM (SELECT count(*) n FROM sales WHERE v < 4) a, (SELECT max(v) m FROM sales WHERE k > 3) b", 3, 2),
        # what is in the query twice is computed once
        (
            "WITH t AS (SELECT k, sum(v) AS s FROM sales GROUP BY k) "
            "SELECT a.k, a.s, b.s AS r FROM t a JOIN t b ON a.k = b.k + 1",
            2,
            1,
        ),
        # a small table is read by the one task that needs it
        ("SELECT name, s FROM (SELECT k, sum(v) AS s FROM sales GROUP BY k) t JOIN names ON t.k = names.k", 2, 2),
    ],
)  # fmt: skip
def test_stages_and_scans(sql: str, stages: int, scans: int) -> None:
    spread = frame(sql, MUCH)
    text = spread.explain().split("== Stages ==")[1]
    assert (text.count("task(s)"), text.count("ScanExec")) == (stages, scans)
    wanted = sorted(map(repr, frame(sql, ONE_TASK).collect()))
    assert sorted(map(repr, spread.collect())) == wanted
    assert sorted(map(repr, frame(sql, LITTLE).collect())) == wanted


def test_a_side_that_is_little_work_needs_no_stage() -> None:
    sql = "SELECT a.n, b.m FROM (SELECT max(v) n FROM sales) a, (SELECT max(k) m FROM names) b"
    text = frame(sql, MUCH).explain().split("== Stages ==")[1]
    assert text.count("task(s)") == 2 and "ReplicateExec" in text
