"""On Spark, few rows sent to the tasks that read a clustered file: a task reads its part of it even if no row comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.accelerate.execution.dataframe import execution_of
from kquery_spark.errors import PlanError
from kquery_spark.physical.operators import ExchangeExec, PhysicalPlan
from kquery_spark.stages.graph import build_stages
from tests.conftest import settings

SHUFFLED = {
    "spark.kquery.smallBytes": "0",
    "spark.kquery.broadcastBytes": "0",
    "spark.kquery.splitBytes": "60000",
}


@pytest.fixture(scope="module")
def shuffled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Customers in the order of their ids, visits in none; every join must move rows."""
    directory: Path = tmp_path_factory.mktemp("visits")
    rng = np.random.default_rng(11)
    ids = np.arange(1, 12_001)
    names = [f"customer {i}" for i in ids]
    pq.write_table(
        pa.table({"id": ids, "name": names}), directory / "customers.parquet", row_group_size=1_000
    )
    who = pa.array(rng.integers(-10, 12_500, 3_000), mask=rng.random(3_000) < 0.05)
    paid = rng.integers(0, 500, 3_000)
    pq.write_table(pa.table({"who": who, "paid": paid}), directory / "visits.parquet", row_group_size=500)
    for name in ("customers", "visits"):
        spark.read.parquet(str(directory / f"{name}.parquet")).createOrReplaceTempView(name)
    with settings(spark, SHUFFLED):
        yield spark


def accelerated(frame: DataFrame) -> DataFrame:
    assert "-> range(" in str(kq.explain(frame))
    return frame.transform(lambda f: kquery_plan(f, fallback="error", when="always"))


@pytest.mark.parametrize("kind", ["INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"])
@pytest.mark.parametrize("where", ["paid < 400", "paid % 7 = 9"], ids=["some", "none"])
def test_joins_give_sparks_rows(shuffled: SparkSession, kind: str, where: str) -> None:
    frame = shuffled.sql(
        f"SELECT * FROM customers {kind} JOIN (SELECT * FROM visits WHERE {where}) v ON id = who"
    )
    actual, expected = accelerated(frame).collect(), frame.collect()
    assert sorted(actual, key=repr) == sorted(expected, key=repr)


def test_a_stage_without_rows_still_informs_every_task_which_files_are_its_own(
    shuffled: SparkSession,
) -> None:
    """The few rows are groups made from a shuffle that carries nothing."""
    visits = "SELECT who, paid, count(*) AS n FROM visits WHERE paid * 2 < who - 100000 GROUP BY who, paid"
    frame = shuffled.sql(
        f"SELECT count(*) AS rows, count(n) AS matched FROM customers LEFT JOIN ({visits}) ON id = who"
    )
    assert [tuple(r) for r in accelerated(frame).collect()] == [(12_000, 0)]


def test_two_such_joins_feed_one_stage(shuffled: SparkSession) -> None:
    """In Spark's union of two stages a task's place is not that of its files."""
    one = "SELECT id, name, paid FROM customers JOIN visits ON id = who WHERE paid < 100"
    other = "SELECT id AS other, sum(paid) AS total FROM customers JOIN visits ON id = who GROUP BY id"
    frame = shuffled.sql(
        f"SELECT a.name, a.paid, b.total FROM ({one}) a JOIN ({other}) b ON a.paid = b.total - a.paid"
    )
    actual, expected = accelerated(frame).collect(), frame.collect()
    assert expected and sorted(actual) == sorted(expected)


def test_rows_sent_to_another_number_of_tasks_than_read_the_files_are_refused(shuffled: SparkSession) -> None:
    fast = accelerated(shuffled.sql("SELECT * FROM customers JOIN visits ON id = who WHERE paid < 400"))
    made = execution_of(fast)
    assert made is not None

    def fewer(node: PhysicalPlan) -> PhysicalPlan:
        if isinstance(node, ExchangeExec) and node.partitioning.bounds:
            bounds = node.partitioning.bounds[:-1]
            return replace(
                node, partitioning=replace(node.partitioning, bounds=bounds, count=len(bounds) + 1)
            )
        return node.with_children([fewer(c) for c in node.children]) if node.children else node

    (part,) = made.placement.parts
    with pytest.raises(PlanError, match=r"files for \d+ tasks and rows that were sent to \d+"):
        build_stages(fewer(part.compiled.physical), made.placement.planned.config)
