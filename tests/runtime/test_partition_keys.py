"""Keys that Spark's hash partitioning sends where they are to go, and queries whose shuffles are made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kquery_spark import kquery_plan
from kquery_spark.runtime.spark.partition_keys import partition_keys, partitions_of
from kquery_spark.spark_bridge.session.bridge import get_bridge
from tests.conftest import settings

MANY_TASKS = {
    "spark.kquery.smallBytes": "0",
    "spark.kquery.splitBytes": "1",
    "spark.kquery.broadcastBytes": "0",
    "spark.kquery.shufflePartitions": "7",
}


@pytest.mark.parametrize("count", [1, 2, 3, 7, 200, 70_000])
def test_each_partition_has_a_key(count: int) -> None:
    keys = partition_keys(count)
    assert keys.dtype == np.int32
    assert (keys >= 0).all()
    assert partitions_of(keys, count).tolist() == list(range(count))


@pytest.mark.parametrize("count", [2, 7, 1000])
def test_spark_sends_a_key_to_its_partition(spark: Any, count: int) -> None:
    keys = spark.createDataFrame([(int(key),) for key in partition_keys(count)], "k int")
    sent = keys.selectExpr("k", f"pmod(hash(k), {count}) p").orderBy("p").collect()
    assert [row.k for row in sent] == partition_keys(count).tolist()
    placed = keys.repartition(count, "k").selectExpr("k", "spark_partition_id() p").collect()
    assert {row.k: row.p for row in placed} == {int(key): i for i, key in enumerate(partition_keys(count))}


@pytest.fixture
def hashing(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark that cannot partition by a partition number, as before 4.1."""
    bridge = get_bridge(spark)
    monkeypatch.setattr(bridge, "api", replace(bridge.api, direct_partition_ids=False))


@pytest.mark.usefixtures("hashing")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, count(*) n, sum(id) s FROM t GROUP BY k",
        "SELECT a.k, count(*) n FROM t a JOIN t b ON a.id = b.id + 1 GROUP BY a.k",
        "SELECT id, k FROM t ORDER BY k, id",
        "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) r FROM t",
    ],
)
def test_shuffles_by_hashed_keys(spark: Any, tmp_path: Any, query: str) -> None:
    path = str(tmp_path / "t")
    spark.range(1000).selectExpr("id", "id % 13 k").repartition(3).write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("t")
    with settings(spark, MANY_TASKS):
        frame = spark.sql(query)
        fast = kquery_plan(frame, when="always", fallback="error")
        expected, actual = frame.collect(), fast.collect()
    assert actual == expected if "ORDER BY k" in query else sorted(actual) == sorted(expected)
