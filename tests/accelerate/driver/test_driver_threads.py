"""All of a query by threads of the driver, where an action collects its rows and its tables are not large."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import ArithmeticException

import kquery_spark as kq
from benchmarks import tpch
from kquery_spark import kquery_plan
from kquery_spark.accelerate.execution.dataframe import execution_of
from kquery_spark.compiler import placement
from kquery_spark.config.engine import EngineConfig
from kquery_spark.runtime.spark import driver
from kquery_spark.spark_bridge.session.bridge import get_bridge
from tests.accelerate.driver.test_driver import IN_DRIVER, jobs
from tests.conftest import exhaustive, settings
from tests.support.memory import MEGABYTES

ROWS = 600_000
GROUPS = "SELECT g, count(*) AS n, sum(v) AS s, max(v) AS m FROM many GROUP BY g ORDER BY g"
JOIN = "SELECT t.name, count(*) AS n, min(v) AS m FROM many JOIN few AS t ON many.g = t.g GROUP BY t.name ORDER BY n, name"


@pytest.fixture(scope="module", autouse=True)
def many(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("threads")
    rng = np.random.default_rng(11)
    values = pa.array(rng.integers(0, 2**40, ROWS), mask=rng.random(ROWS) < 0.1)
    table = pa.table({"g": rng.integers(0, 50, ROWS).astype(np.int32), "v": values})
    pq.write_table(table, directory / "many.parquet", row_group_size=100_000)
    few = {"g": pa.array(range(50), pa.int32()), "name": [f"name {i % 7}" for i in range(50)]}
    pq.write_table(pa.table(few), directory / "few.parquet")
    for name in ("many", "few"):
        spark.read.parquet(str(directory / f"{name}.parquet")).createOrReplaceTempView(name)
    yield
    for name in ("many", "few"):
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize("query", [GROUPS, JOIN])
@pytest.mark.parametrize("small", ["8m", "1m"], ids=["one stage", "stages"])
def test_threads_of_the_driver_need_no_job(spark: Any, query: str, small: str):
    frame = spark.sql(query)
    with settings(spark, {**IN_DRIVER, "spark.kquery.smallBytes": small}):
        fast = kquery_plan(frame, fallback="error")
        assert jobs(spark, lambda: (fast.toArrow(), fast.collect(), fast.count())) == 0
        assert fast.toArrow().equals(frame.toArrow())
        assert "in the driver by 2 threads if an action collects the rows" in str(kq.explain(frame))
        report = kq.verify(frame)
        assert report.ok, str(report)
    with settings(spark, {**IN_DRIVER, "spark.kquery.smallBytes": small, "spark.kquery.threadBytes": "1m"}):
        alone = kquery_plan(frame, fallback="error")
        assert jobs(spark, alone.toArrow) == (small != "8m")
        assert "threads" not in str(kq.explain(frame))
        assert alone.toArrow().equals(frame.toArrow())
    with settings(spark, {"spark.kquery.driverBytes": "0"}):
        assert jobs(spark, kquery_plan(frame, fallback="error").toArrow) > 0


MANY_GROUPS = (
    "SELECT count(*) AS n, max(c) AS c FROM (SELECT v, count(*) AS c FROM many GROUP BY v) AS counts"
)


@pytest.mark.parametrize(
    ("query", "needs_workers"), [(JOIN, False), (MANY_GROUPS, True)], ids=["join", "groups"]
)
def test_many_groups_need_workers_but_a_join_with_few_rows_per_row_does_not(
    spark: Any, query: str, needs_workers: bool
):
    frame = spark.sql(query)
    for driver_rows, expected in (("1e6", False), ("1e3", needs_workers)):
        given = {**IN_DRIVER, "spark.kquery.smallBytes": "1m", "spark.kquery.cost.driverRows": driver_rows}
        with settings(spark, given):
            fast = kquery_plan(frame, fallback="error")
            assert (jobs(spark, fast.toArrow) > 0) == expected
            assert fast.toArrow().equals(frame.toArrow())


def test_a_local_master_with_few_cores_runs_more_in_the_driver(spark: Any):
    default, local = EngineConfig(), EngineConfig.for_local_master(2)
    assert (local.driver_bytes, local.thread_bytes) == (64 * MEGABYTES, 128 * MEGABYTES)
    assert EngineConfig.for_local_master(8) == replace(default, parallelism=8)
    assert get_bridge(spark).config_and_costs()[0].thread_bytes == local.thread_bytes


def test_rows_that_are_only_passed_on_keep_their_order(spark: Any):
    frame = spark.sql("SELECT g, v FROM many WHERE v < 1000000000")
    with settings(spark, {**IN_DRIVER, "spark.kquery.smallBytes": "64m"}):
        fast = kquery_plan(frame, when="always", fallback="error")
        assert fast._kquery.placement.driver is not None
        assert fast.toArrow().equals(frame.toArrow())
        assert "threads" not in str(kq.explain(frame))


def test_a_sort_that_tasks_share_keeps_its_order_in_threads(spark: Any):
    frame = spark.sql("SELECT v, g FROM many WHERE g < 40 ORDER BY v DESC, g")
    with settings(spark, {"spark.kquery.driverBytes": "1m", "spark.kquery.smallBytes": "1k"}):
        fast = kquery_plan(frame, when="always", fallback="error")
        (part,) = execution_of(fast).placement.parts
        assert part.threaded is not None and len(part.threaded.graph.result.tasks) == 2
        assert jobs(spark, fast.toArrow) == 0
        assert fast.toArrow().equals(frame.toArrow())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT g, collect_list(v) AS l, first(v) AS f, last(v) AS k FROM many GROUP BY g ORDER BY g",
        "SELECT g, max_by(v, g) AS a, min_by(v, g) AS i FROM many GROUP BY g ORDER BY g",
    ],
)
def test_threads_take_rows_in_the_order_of_files(spark: Any, query: str):
    frame = spark.sql(query)
    with settings(spark, {**IN_DRIVER, "spark.kquery.smallBytes": "1m"}):
        fast = kquery_plan(frame, fallback="error")
        assert "by 2 threads" in str(kq.explain(frame))
        assert jobs(spark, fast.toArrow) == 0
        assert fast.toArrow().equals(frame.toArrow())


def test_what_a_thread_raises_is_sparks_error(spark: Any):
    frame = spark.sql("SELECT g, sum(1000 DIV (v - v)) AS s FROM many GROUP BY g")
    with settings(spark, IN_DRIVER):
        fast = kquery_plan(frame)
        assert fast is not frame
        assert "by 2 threads" in str(kq.explain(frame))
        with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
            fast.collect()


def test_settings_of_numbers_are_the_engines_in_every_thread(spark: Any):
    frame = spark.sql(
        "SELECT g, sum(CAST(v AS DOUBLE) * 1e300D * 1e300D) AS s, avg(CAST(v AS DECIMAL(20, 5))) AS d "
        "FROM many GROUP BY g ORDER BY g"
    )
    expected = frame.toArrow()
    with settings(spark, IN_DRIVER), np.errstate(all="raise"), decimal.localcontext(decimal.Context(prec=3)):
        fast = kquery_plan(frame, fallback="error")
        assert jobs(spark, fast.toArrow) == 0
        assert fast.toArrow().equals(expected)


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=() if n in (1, 3, 5, 6, 9, 13, 18, 21) else exhaustive) for n in range(1, 23)],
)
def test_tpch_is_the_same_by_threads(
    spark: Any, tables: Any, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(placement, "_MIN_THREADED_BYTES", 0)
    with settings(spark, {**IN_DRIVER, "spark.kquery.cost.threadedBytes": "0"}):
        frame = spark.sql(tpch.query(number))
        assert "by 2 threads" in str(kq.explain(frame))
        report = kq.verify(frame)
        assert report.ok, str(report)


def test_a_second_large_query_runs_as_tasks(spark: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(driver, "_MAX_BYTES", MEGABYTES)  # so that the table counts as large
    frame = spark.sql(GROUPS)
    with settings(spark, {**IN_DRIVER, "spark.kquery.smallBytes": "1m"}):
        with driver._large_run:
            fast = kquery_plan(frame, fallback="error")
            assert jobs(spark, fast.toArrow) > 0
            assert fast.toArrow().equals(frame.toArrow())
        # The same DataFrame tries the driver again.
        assert jobs(spark, lambda: (fast.toArrow(), fast.count())) == 0
        assert not driver._large_run.locked()
