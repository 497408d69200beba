"""Work in the driver that turns out to be much more than estimated: Spark's tasks take over before the memory is taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.accelerate.execution.dataframe import execution_of
from kquery_spark.accelerate.planning import part as part_module
from kquery_spark.accelerate.planning.part import Part
from kquery_spark.run_control import LimitReached
from kquery_spark.runtime.spark import driver, executor
from tests.accelerate.driver.test_driver import IN_DRIVER, STAGES, jobs
from tests.conftest import settings
from tests.support.memory import MEGABYTES, peak_memory

ROWS = 6_000
PAIRS = "small AS a JOIN small AS b ON a.k = b.k"
ROWS_OUT = {
    "join": f"SELECT a.v, b.text FROM {PAIRS}",
    "cross join": "SELECT a.v, b.text FROM small AS a CROSS JOIN small AS b",
    "explode": "SELECT v, explode(sequence(1, n)) AS e FROM small WHERE v > 5995",
    "repeat": "SELECT v, repeat(text, n) AS t FROM small WHERE v > 5980",
}
FEW_ROWS = {
    "join": f"SELECT b.text, count(*) AS c, sum(a.v) AS s FROM {PAIRS} GROUP BY b.text",
    "join without result": f"SELECT a.v FROM {PAIRS} AND a.v + b.v < 0",
    "explode": "SELECT v, count(e) AS c FROM (SELECT v, explode(sequence(1, n)) AS e FROM small WHERE v > 5995) GROUP BY v",
    "repeat": "SELECT v, length(repeat(text, n)) AS l FROM small WHERE v > 5980 ORDER BY v",
}
FIRST_ROWS = {
    "count": lambda frame: frame.count(),
    "isEmpty": lambda frame: frame.isEmpty(),
    "take": lambda frame: len(frame.take(5)),
    "first": lambda frame: frame.first() is None,
    "head": lambda frame: len(frame.head(3)),
}
ALL_ROWS = {
    **FIRST_ROWS,
    "collect": lambda frame: sorted(map(repr, frame.collect())),
    "tail": lambda frame: sorted(map(repr, frame.tail(10))),
    "show": lambda frame: sorted(frame._show_string(100).splitlines()),
    "toArrow": lambda frame: sorted(map(repr, frame.toArrow().to_pylist())),
    "toPandas": lambda frame: sorted(map(repr, frame.toPandas().to_dict("records"))),
    "toLocalIterator": lambda frame: sorted(map(repr, frame.toLocalIterator())),
}


@pytest.fixture(scope="module", autouse=True)
def skewed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """6,000 rows that are 36 million in a join, though the key goes from 1 to 6,000; and a part of them: a million."""
    directory = tmp_path_factory.mktemp("skewed")
    table = {
        "k": pa.array([1] * (ROWS - 1) + [ROWS]),
        "v": pa.array(range(ROWS), pa.int32()),
        "n": pa.array([200_000] * ROWS, pa.int32()),
        "text": ["some text"] * ROWS,
    }
    pq.write_table(pa.table(table), directory / "1.parquet")
    small = pa.table(table).slice(ROWS - 1000)
    pq.write_table(small, directory / "small.parquet")
    spark.read.parquet(str(directory / "1.parquet")).createOrReplaceTempView("skewed")
    spark.read.parquet(str(directory / "small.parquet")).createOrReplaceTempView("small")
    yield
    for name in ("skewed", "small"):
        spark.catalog.dropTempView(name)


@pytest.fixture
def misjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the query, it is estimated to be little work; the limits are as small as the tables are."""
    monkeypatch.setattr(Part, "is_bounded", True)
    monkeypatch.setattr(driver, "_MAX_ROWS", 500_000)
    monkeypatch.setattr(driver, "_MAX_BYTES", 5 * MEGABYTES)
    monkeypatch.setattr(driver, "_BYTES_PER_INPUT_BYTE", 0)


def in_driver(spark: Any, query: str) -> Any:
    part_module._exceeding.clear()
    fast = spark.sql(query).transform(kquery_plan, when="always", fallback="error")
    assert execution_of(fast).placement.driver is not None
    return fast


@pytest.mark.usefixtures("misjudged")
@pytest.mark.parametrize("name", ROWS_OUT)
def test_the_first_of_many_rows(spark: Any, name: str):
    frame = spark.sql(ROWS_OUT[name])
    with settings(spark, IN_DRIVER):
        for action, run in FIRST_ROWS.items():
            fast = in_driver(spark, ROWS_OUT[name])
            with peak_memory() as peak:
                found = run(fast)
            assert peak.nbytes < 300 * MEGABYTES, action
            assert found == run(frame), action
    assert jobs(spark, lambda: fast.take(1)) == (1 if execution_of(fast).placement.driver is None else 0)


@pytest.mark.usefixtures("misjudged")
@pytest.mark.parametrize("name", FEW_ROWS)
def test_many_rows_on_the_way(spark: Any, name: str):
    frame = spark.sql(FEW_ROWS[name])
    with settings(spark, IN_DRIVER):
        for action, run in ALL_ROWS.items():
            fast = in_driver(spark, FEW_ROWS[name])
            with peak_memory() as peak:
                found = run(fast)
            assert peak.nbytes < 300 * MEGABYTES, action
            assert found == run(frame), action


def test_a_join_of_a_skewed_key_is_estimated_to_be_little_work(spark: Any):
    """With the limits that there are."""
    pairs = "FROM skewed AS a JOIN skewed AS b ON a.k = b.k"
    with settings(spark, IN_DRIVER):
        for query in (f"SELECT b.text, count(*) AS c {pairs} GROUP BY b.text", f"SELECT a.v, b.text {pairs}"):
            fast = in_driver(spark, query)
            with peak_memory() as peak:
                assert jobs(spark, fast.count) > 0
            assert peak.nbytes < 300 * MEGABYTES


@pytest.mark.usefixtures("misjudged")
def test_a_query_that_left_the_driver_stays_with_spark(spark: Any, monkeypatch: pytest.MonkeyPatch):
    tries = []
    work = driver.DriverExecutor._run

    def counted(self: Any, consume: Any) -> Any:
        tries.append(1)
        return work(self, consume)

    monkeypatch.setattr(driver.DriverExecutor, "_run", counted)
    with settings(spark, IN_DRIVER):
        fast = in_driver(spark, FEW_ROWS["join"])
        assert jobs(spark, fast.collect) > 0
        assert jobs(spark, lambda: (fast.collect(), fast.count(), fast.take(1), fast.toArrow())) > 0
    assert len(tries) == 1


def test_the_first_rows_do_not_need_the_others(spark: Any):
    """36 million rows of a join; the driver computes a few."""
    with settings(spark, IN_DRIVER):
        fast = in_driver(spark, "SELECT a.v, b.text FROM skewed AS a JOIN skewed AS b ON a.k = b.k")
        assert jobs(spark, lambda: (fast.take(5), fast.first(), fast.isEmpty(), fast._show_string(3))) == 0
        assert len(fast.take(200_000)) == 200_000
        assert [repr(r) for r in fast.take(3)] == [repr(r) for r in fast.take(200_000)[:3]]


def test_time_is_a_limit_too(spark: Any, monkeypatch: pytest.MonkeyPatch):
    with settings(spark, IN_DRIVER):
        fast = in_driver(spark, "SELECT k, count(*) AS c FROM skewed GROUP BY k")
        assert jobs(spark, fast.collect) == 0
        monkeypatch.setattr(driver, "MAX_DRIVER_SECONDS", 0.0)
        assert jobs(spark, fast.collect) > 0
        assert sorted(fast.collect()) == [(1, ROWS - 1), (ROWS, 1)]


def test_rows_of_earlier_stages_that_are_too_many_stay_with_spark(
    spark: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("kquery_spark.runtime.spark.frames._MIN_TASK_LIMIT_BYTES", 1000)
    query = "SELECT v % 1000 AS g, max(text) AS t FROM skewed GROUP BY v % 1000"
    with settings(spark, STAGES):
        fast = in_driver(spark, query)
        work = execution_of(fast).placement.driver
        assert work is not None
        monkeypatch.setattr(driver, "_MAX_BYTES", 4000)
        monkeypatch.setattr(driver, "_BYTES_PER_INPUT_BYTE", 0)
        with pytest.raises(LimitReached):
            work.table()
        assert work._input is None
        assert sorted(fast.collect()) == sorted(spark.sql(query).collect())
        assert execution_of(fast).placement.driver is None


def test_a_result_that_unfolds_to_more_than_the_driver_may_have(spark: Any, monkeypatch: pytest.MonkeyPatch):
    query = "SELECT a.v FROM skewed AS a JOIN (SELECT * FROM skewed WHERE v < 100) AS b ON a.k = b.k WHERE a.v < 2000"
    frame = spark.sql(query)
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    workers = execution_of(fast).placement.spark
    assert workers.table().num_rows == frame.count()
    monkeypatch.setattr(executor, "max_result_bytes", lambda _: 100_000)

    def collect_in_vain() -> None:
        with pytest.raises(LimitReached):
            workers.table()

    collect_in_vain()
    assert jobs(spark, collect_in_vain) == 0  # it is not tried again
    assert fast.toArrow().num_rows == frame.count()


@pytest.mark.usefixtures("misjudged")
def test_equal_queries_of_an_enabled_session_try_the_driver_once(spark: Any, monkeypatch: pytest.MonkeyPatch):
    tries = []
    work = driver.DriverExecutor._run

    def counted(self: Any, consume: Any) -> Any:
        tries.append(1)
        return work(self, consume)

    monkeypatch.setattr(driver.DriverExecutor, "_run", counted)
    query = f"SELECT b.text, count(*) AS c, max(a.v) AS m FROM {PAIRS} GROUP BY b.text"
    with settings(spark, IN_DRIVER):
        kq.enable(spark, when="always")
        try:
            for _ in range(2):
                assert len(spark.sql(query).collect()) == 1
            assert len(tries) == 1
            assert len(spark.sql("SELECT k FROM skewed WHERE v = 3").collect()) == 1
            assert len(tries) == 2
        finally:
            kq.disable(spark)
