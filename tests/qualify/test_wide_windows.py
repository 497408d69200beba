"""Ordered windows over wide rows save less."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from kquery_spark.config.cost import CostModel
from kquery_spark.config.engine import EngineConfig
from kquery_spark.qualify.application import Application, QueryRun, StageWork
from kquery_spark.qualify.attribution import task_seconds
from kquery_spark.qualify.estimate import estimate
from kquery_spark.qualify.event_files import find_logs
from kquery_spark.qualify.judgment import judge
from kquery_spark.qualify.plan import PhysicalNode
from kquery_spark.qualify.wide_windows import is_ordered, wide_row_seconds
from tests.support.event_logs import logged_events

KEYS = "a#1 DESC NULLS LAST, f(b#2, c#3) ASC NULLS FIRST"


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (
            PhysicalNode("WindowGroupLimit", f"WindowGroupLimit [k#0], [{KEYS}], row_number(), 1, Partial"),
            True,
        ),
        (
            PhysicalNode("Window", f"Window [row_number() spec(k#0, {KEYS}, frame) AS r#9], [k#0], [{KEYS}]"),
            True,
        ),
        (PhysicalNode("Window", "Window [sum(a#1) spec(k#0, frame) AS r#9], [k#0]"), False),
        (PhysicalNode("Window", f"Window [rank() AS r#9], [k#0], [{KEYS}, ... 3 more fields]"), True),
        (PhysicalNode("Window", "Window [count(1) spec(k#0, ... 2 more fields) AS r#9], [k#0]"), False),
    ],
    ids=["group limit", "window", "unordered", "cut off", "cut off before"],
)
def test_orders_are_found_in_the_string_of_the_plan(node, expected):
    assert is_ordered(node) is expected


def test_wider_rows_take_longer(spark, tmp_path):
    columns = [f"hash(id, {i}) AS c{i}" for i in range(8)]
    data = spark.range(20_000).selectExpr("id % 5000 AS k", "repeat('x', 100) AS wide", *columns)
    data.write.parquet(str(tmp_path / "data"))
    data = spark.read.parquet(str(tmp_path / "data"))
    cases = {"narrow": (1, data.select("k", "c0")), "wide": (1, data), "seven": (7, data)}
    with logged_events(spark, tmp_path / "log", compress="false", rolling_enabled="false"):
        for name, (count, frame) in cases.items():
            order = Window.partitionBy("k").orderBy(*[f"c{i}" for i in range(count)])
            spark.sparkContext.setJobDescription(name)
            first = frame.withColumn("n", F.row_number().over(order)).filter("n = 1")
            first.write.format("noop").mode("overwrite").save()
        spark.sparkContext.setJobDescription(None)
    (log,) = find_logs(tmp_path / "log")
    seconds = {}
    for run in Application(log).queries():
        nodes = [node for top in judge(run.plan, spark.version) for node in top.walk()]
        seconds[run.description] = sum(wide_row_seconds(node, run, CostModel()) for node in nodes)
    assert seconds["narrow"] == 0
    assert seconds["wide"] > 20_000 * 100 * CostModel().sort_byte_seconds
    assert seconds["seven"] == seconds["wide"]


def test_wider_rows_save_less_and_at_last_nothing():
    shuffled = PhysicalNode("Exchange", metrics={"data size": 1, "shuffle records written": 2})
    scan = PhysicalNode("Scan parquet", "FileScan parquet", metrics={"number of output rows": 2})
    window = PhysicalNode(
        "Window",
        "Window [row_number() AS n#9], [k#8], [c#0 ASC NULLS FIRST]",
        (replace(shuffled, children=(scan,)),),
    )

    def saved(row_bytes: int) -> float:
        run = QueryRun(1, "", 0.0, window, end=20.0, spans=[(0.0, 20.0)], values={1: 5e6 * row_bytes, 2: 5e6})
        run.stages[0] = StageWork(tasks=2, run_seconds=40.0)
        judged = judge(window, "4.1.0")
        return estimate(
            run, judged, task_seconds(window, judged, run.stages), CostModel(), EngineConfig()
        ).wall.expected

    assert 0 < saved(150) < saved(30)
    assert saved(10_000) == 0
