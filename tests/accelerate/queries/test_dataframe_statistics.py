"""What DataFrames offer beside SQL: observations, statistics, NULL handling, and hints in the middle of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

import kquery_spark as kq
from tests.accelerate.checks import check, view_of_files

#: Each with the share of its plan that has to run in the engine.
FRAMES: dict[str, tuple[Callable[[DataFrame], DataFrame], float]] = {
    # as numbers: the last digit of a deviation goes by the order in which tasks end, in Spark, too
    "describe": (
        lambda t: t.select("v", "s").describe().selectExpr("summary", "double(v) AS v", "double(s) AS s"),
        1.0,
    ),
    "dropna": (lambda t: t.dropna(thresh=2, subset=["v", "s", "k"]).groupBy("k").count(), 1.0),
    "fillna": (lambda t: t.fillna({"v": 0.5, "s": "none"}).groupBy("s").agg(F.max("v")), 1.0),
    "replace": (lambda t: t.replace("1", "one", subset=["s"]).groupBy("s").count(), 1.0),
    "repartitioned": (lambda t: t.repartition(5).groupBy("k").count().repartition(3).sort("k"), 1.0),
    "by a key": (lambda t: t.repartition(5, "k").groupBy("k").agg(F.max("id")), 1.0),
    "by ranges": (lambda t: t.repartitionByRange(5, "k").groupBy("k").agg(F.max("id")), 1.0),
    "coalesced": (lambda t: t.groupBy("k").count().coalesce(1).sort("k"), 1.0),
    "hinted": (lambda t: t.join(F.broadcast(t.select("id", "s")), "id").groupBy("k").count(), 1.0),
    "summary": (lambda t: t.select("v").summary("count", "50%"), 0.0),
    "sampled": (lambda t: t.groupBy("k").count().sample(fraction=0.5, seed=3), 0.0),
    "sample": (lambda t: t.sample(fraction=0.5, seed=3).groupBy("k").count(), 0.2),
    "observed": (lambda t: t.groupBy("k").count().observe("o", F.count(F.lit(1)).alias("n")), 0.7),
}


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: Any) -> Iterator[DataFrame]:
    query = """SELECT id, id % 7 AS k, IF(id % 11 = 0, NULL, id / 4) AS v, IF(id % 5 = 0, NULL, CAST(id % 3 AS STRING)) AS s
               FROM range(200)"""
    with view_of_files(spark, "numbers_of_a_frame", query, Path(tmp_path_factory.mktemp("frames"))):
        yield spark.table("numbers_of_a_frame")


@pytest.mark.parametrize("name", FRAMES)
def test_coverage(table: DataFrame, name: str) -> None:
    frame, coverage = FRAMES[name]
    check(frame(table), coverage)


def test_an_observation_is_filled(spark: SparkSession, table: DataFrame) -> None:
    metrics = (F.count(F.lit(1)).alias("n"), F.max("id").alias("z"))
    above, below = Observation(), Observation()
    grouped = table.groupBy("k").agg(F.sum("id").alias("id"))
    kq.enable(spark, when="always")
    try:
        rows = grouped.observe(above, *metrics).collect()
        count = table.observe(below, *metrics).groupBy("k").count().count()
    finally:
        kq.disable(spark)
    assert len(rows) == count == 7
    assert above.get == {"n": 7, "z": max(row.id for row in rows)}
    assert below.get == {"n": 200, "z": 199}


def test_statistics_of_an_enabled_session(spark: SparkSession, table: DataFrame) -> None:
    def statistics() -> list[Any]:
        return [
            table.corr("id", "k"),
            table.cov("id", "k"),
            table.approxQuantile("id", [0.25, 0.5], 0.0),
            sorted(map(str, table.crosstab("k", "s").collect())),
            [set(column) for column in table.freqItems(["s"], 0.3).collect()[0]],
        ]

    want = statistics()
    kq.enable(spark, when="always")
    try:
        given = statistics()
    finally:
        kq.disable(spark)
    assert given[2:] == want[2:]
    assert given[:2] == pytest.approx(want[:2])
