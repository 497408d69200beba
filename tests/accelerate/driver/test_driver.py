"""The last stage in the driver, or its rows collected there as Arrow: Spark's in every action's own form."""

from __future__ import annotations

import datetime
import decimal
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, ArithmeticException, PySparkException, PythonException

import kquery_spark as kq
from benchmarks import tpch
from kquery_spark import kquery_plan
from kquery_spark.accelerate.execution.dataframe import execution_of
from kquery_spark.accelerate.planning import part as part_module
from kquery_spark.errors import FallbackWarning
from kquery_spark.runtime.spark import driver
from kquery_spark.spark_bridge.session.failures import error_class
from tests.conftest import exhaustive, settings

IN_DRIVER = {"spark.kquery.driverBytes": "8m"}
STAGES = {
    **IN_DRIVER,
    "spark.kquery.threadBytes": "0",
    "spark.kquery.smallBytes": "0",
    "spark.kquery.splitBytes": "1k",
}
WORKERS = {**STAGES, "spark.kquery.driverBytes": "0"}
WHEN = datetime.datetime(2024, 2, 29, 23, 59, 59, 123456)

ROWS = pa.table(
    {
        "k": pa.array([1, 2, None, 2, 1, 3], pa.int32()),
        "flag": pa.array([True, None, False, True, None, None]),
        "tiny": pa.array([1, -128, None, 127, 0, None], pa.int8()),
        "small": pa.array([1, -32768, None, 32767, 0, None], pa.int16()),
        "long": pa.array([2**40, None, -(2**63), 2**63 - 1, 0, None], pa.int64()),
        "single": pa.array([1.5, float("nan"), None, float("inf"), -0.0, None], pa.float32()),
        "double": pa.array([1.1, float("nan"), None, float("-inf"), -0.0, None], pa.float64()),
        "text": pa.array(["a", "", None, "ünïcode 🎈", "x" * 300, None]),
        "bytes": pa.array([b"a", b"", None, b"\x00\xff", b"y", None]),
        "day": pa.array([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None, WHEN.date(), None, None]),
        "at": pa.array([WHEN, None, WHEN, WHEN, None, None], pa.timestamp("us", "UTC")),
        "local": pa.array([WHEN, None, WHEN, WHEN, None, None], pa.timestamp("us")),
        "price": pa.array([Decimal("1.10"), None, Decimal("-99999.99"), Decimal(0), None, None], pa.decimal128(7, 2)),
        "wide": pa.array([Decimal(10**37), None, Decimal(-1), Decimal(0), None, None], pa.decimal128(38, 0)),
        "items": pa.array([[1, None], [], None, [3], [4, 5], None], pa.list_(pa.int64())),
        "point": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": None}, {"x": 2, "y": ""}, None, None]),
        "tags": pa.array([[("a", 1)], [], None, [("b", None)], None, None], pa.map_(pa.string(), pa.int32())),
    }
)  # fmt: skip
QUERIES = (
    "SELECT * FROM typed ORDER BY k, text",
    "SELECT k, count(*) AS n, max(text) AS text, max(price) AS price, max(at) AS at, max(local) AS local, "
    "max(day) AS day, min(wide) AS wide, max(double) AS double, min(single) AS single, max(bytes) AS bytes, "
    "first(items) AS items, first(point) AS point, first(tags) AS tags, max(tiny), max(small), max(long), max(flag) "
    "FROM typed WHERE text = 'a' GROUP BY k",
    "SELECT k, flag, tiny, small, long, single, double, text, day, at, local, price, wide, CAST(k AS DECIMAL(38, 10)) AS d, "
    "CAST(0 AS DECIMAL(20, 12)) AS zero FROM typed ORDER BY k, text",
    "SELECT k, k, sum(long) AS k FROM typed WHERE k = 1 GROUP BY k",
    "SELECT k, sum(double) AS s, INTERVAL '1 02:03:04.5' DAY TO SECOND AS i, NULL AS nothing FROM typed "
    "WHERE k > 7 GROUP BY k",
    "SELECT k, sum(double) AS s, INTERVAL '1 02:03:04.5' DAY TO SECOND AS i FROM typed GROUP BY k ORDER BY k",
    "SELECT `k` AS `a b.c`, count(*) AS `Σ` FROM typed GROUP BY k ORDER BY k",
)


@pytest.fixture(scope="module", autouse=True)
def typed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("driver")
    pq.write_table(ROWS.slice(0, 3), directory / "1.parquet")
    pq.write_table(ROWS.slice(3), directory / "2.parquet")
    spark.read.parquet(str(directory)).createOrReplaceTempView("typed")
    yield directory
    spark.catalog.dropTempView("typed")


@pytest.fixture(autouse=True)
def nothing_exceeded() -> None:
    """No query of an earlier test is remembered as too much for the driver."""
    part_module._exceeding.clear()


def jobs(spark: Any, work: Any) -> int:
    """How many jobs an action runs."""
    context = spark.sparkContext
    context.setJobGroup("counted", "an action")
    tracker = context.statusTracker()
    before = len(tracker.getJobIdsForGroup("counted"))
    try:
        work()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    context._jsc.sc().listenerBus().waitUntilEmpty()
    return len(tracker.getJobIdsForGroup("counted")) - before


def fast_of(frame: Any) -> Any:
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    assert (fast._kquery.placement.driver is not None) is (
        frame.sparkSession.conf.get("spark.kquery.driverBytes") != "0"
    )
    assert fast._kquery.placement.spark._payloads is not None
    return fast


@pytest.mark.parametrize(
    ("query", "where"),
    [
        *(pytest.param(query, IN_DRIVER, id=f"{n}-all of it") for n, query in enumerate(QUERIES)),
        *(pytest.param(query, STAGES, id=f"{n}-the last stage") for n, query in enumerate(QUERIES)),
        # in workers each action is a job, and tests of every action run them
        *(
            pytest.param(query, WORKERS, id=f"{n}-nothing", marks=() if n in (0, 5) else exhaustive)
            for n, query in enumerate(QUERIES)
        ),
    ],
)
def test_every_action_gives_what_spark_gives(spark: Any, query: str, where: dict[str, str]):
    with settings(spark, where):
        frame = spark.sql(query)
        fast = fast_of(frame)
        assert fast.schema == frame.schema
        schemas = {b.schema for b in frame._collect_as_arrow()}
        assert {b.schema for b in fast._collect_as_arrow()} == schemas
        assert fast.toArrow().equals(frame.toArrow()) or repr(fast.toArrow().to_pylist()) == repr(
            frame.toArrow().to_pylist()
        )
        assert fast.toArrow().schema.equals(frame.toArrow().schema, check_metadata=True)
        assert repr(fast.collect()) == repr(frame.collect())
        assert [[type(v) for v in row] for row in fast.collect()] == [
            [type(v) for v in row] for row in frame.collect()
        ]
        assert [row.asDict().keys() for row in fast.collect()] == [
            row.asDict().keys() for row in frame.collect()
        ]
        assert fast.take(0) == fast.tail(0) == []
        with pytest.raises(AnalysisException, match="INVALID_LIMIT_LIKE_EXPRESSION"):
            fast.take(-1)
        assert repr(fast.take(2)) == repr(frame.take(2))
        assert repr(fast.first()) == repr(frame.first())
        assert repr(fast.tail(1)) == repr(frame.tail(1))
        assert fast.count() == frame.count()
        assert fast.isEmpty() == frame.isEmpty()
        assert fast._show_string(2, 10) == frame._show_string(2, 10)
        assert fast._show_string(20, False, True) == frame._show_string(20, False, True)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("arrow", ["true", "false"])
@pytest.mark.parametrize("query", QUERIES[:2])
@pytest.mark.parametrize("where", [IN_DRIVER, WORKERS], ids=["driver", "workers"])
def test_pandas_frames_and_times_are_sparks(
    spark: Any, where: dict[str, str], query: str, arrow: str, zone: str
):
    given = {"spark.sql.execution.arrow.pyspark.enabled": arrow, "spark.sql.session.timeZone": zone}
    with settings(spark, {**where, **given}):
        frame = spark.sql(query)
        fast = fast_of(frame)
        left, right = fast.toPandas(), frame.toPandas()
        assert list(left.dtypes) == list(right.dtypes)
        assert repr(left.to_dict("list")) == repr(right.to_dict("list"))
        assert repr(fast.collect()) == repr(frame.collect())
        assert repr(fast.toArrow().to_pylist()) == repr(frame.toArrow().to_pylist())


@pytest.mark.parametrize("number", [1, 4, 11, 13, 15, 16, 18, 22])
def test_tpch_is_the_same_with_its_last_stage_in_the_driver(spark: Any, tables: Any, number: int):
    with settings(spark, {**IN_DRIVER, "spark.kquery.smallBytes": "0", "spark.kquery.broadcastBytes": "1m"}):
        report = kq.verify(spark.sql(tpch.query(number)))
        assert report.ok, str(report)


def test_little_work_needs_no_job_and_a_last_stage_no_second_one(spark: Any):
    query = "SELECT k, count(*) AS n FROM typed GROUP BY k"
    with settings(spark, IN_DRIVER):
        fast = fast_of(spark.sql(query))
        assert jobs(spark, fast.collect) == 0
        assert jobs(spark, fast.toArrow) == 0
    with settings(spark, STAGES):
        fast = fast_of(spark.sql(query))
        assert jobs(spark, fast.toArrow) == 1
        assert jobs(spark, lambda: (fast.toArrow(), fast.collect(), fast.count(), fast.isEmpty())) == 0
    with settings(spark, {"spark.kquery.driverBytes": "0"}):
        fast = spark.sql(query).transform(kquery_plan, when="always")
        assert fast._kquery.placement.driver is None
        assert jobs(spark, fast.collect) > 0


@pytest.mark.parametrize(
    ("query", "driver"),
    [
        ("SELECT * FROM typed", True),
        ("SELECT k + 1 AS k, text FROM typed WHERE k > 1", True),
        ("SELECT k FROM typed UNION ALL SELECT tiny FROM typed", True),
        ("SELECT k, text FROM typed ORDER BY k, text LIMIT 2", True),
        ("SELECT 1 AS one, current_date() AS today", True),
        ("SELECT * FROM range(5)", False),
        ("SELECT k FROM typed UNION ALL SELECT 7", True),
        ("SELECT a + 1 AS a FROM VALUES (1), (2) AS t(a)", False),
        ("SELECT k, explode(items) AS item FROM typed", False),
    ],
)
def test_rows_of_small_files_are_passed_on_by_the_driver(spark: Any, query: str, driver: bool):
    frame = spark.sql(query)
    with settings(spark, IN_DRIVER):
        fast = kquery_plan(frame)
        assert (fast is not frame) == driver
        assert kq.explain(frame).accelerated == driver
        if driver:
            assert jobs(spark, fast.collect) == 0
        assert sorted(map(repr, fast.collect())) == sorted(map(repr, frame.collect()))
    with settings(spark, {"spark.kquery.driverBytes": "1"}):
        assert kquery_plan(frame) is frame


def test_tiny_queries_are_the_drivers_and_all_else_of_them_is_sparks(spark: Any, tmp_path: Any):
    frame = spark.sql("SELECT k, tiny AS n FROM typed ORDER BY k, n LIMIT 4 OFFSET 1")
    with settings(spark, IN_DRIVER):
        fast = kquery_plan(frame)
        assert isinstance(fast, type(fast_of(frame)))
        assert fast._jdf is frame._jdf
        (decision,) = kq.explain(frame).decisions
        assert decision.driver_only
        assert "in the driver if an action collects the rows" in str(kq.explain(frame))
        assert "collects the rows runs it in the driver" in str(kq.explain(fast))
        fast.write.parquet(str(tmp_path / "out"))
        assert sorted(map(repr, spark.read.parquet(str(tmp_path / "out")).collect())) == sorted(
            map(repr, frame.collect())
        )
        assert sorted(fast.where("n > 1").collect()) == sorted(frame.where("n > 1").collect())
    with settings(spark, {"spark.kquery.driverBytes": "0"}):
        assert kquery_plan(frame) is frame
        assert "in the driver" not in str(kq.explain(frame))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, explode(sequence(1, 5)) AS e FROM typed",
        "SELECT count(*) AS n FROM typed AS a, range(1000000000) AS b WHERE a.k > b.id",
        "SELECT id, count(*) AS n FROM range(3000000) GROUP BY id",
    ],
)
def test_what_may_be_much_work_is_not_the_drivers(spark: Any, query: str):
    with settings(spark, IN_DRIVER):
        fast = spark.sql(query).transform(kquery_plan, when="always")
        made = execution_of(fast)
        assert made is None or made.placement.driver is None


@pytest.mark.parametrize(
    "where", [IN_DRIVER, STAGES, WORKERS], ids=["all of it", "the last stage", "nothing"]
)
def test_errors_of_a_query_are_those_of_spark(spark: Any, where: dict[str, str]):
    frame = spark.sql("SELECT k, 1 div (sum(k) - 2) AS q FROM typed GROUP BY k")
    with settings(spark, where):
        fast = kquery_plan(frame, when="always")
        assert (fast._kquery.placement.driver is None) is (where is WORKERS)
        for action in (fast.collect, fast.toArrow):
            with pytest.raises(ArithmeticException) as raised:
                action()
            assert raised.value.getCondition() == "DIVIDE_BY_ZERO"
        with pytest.raises(PythonException) as by_engine:
            fast_of(frame).collect()
        assert error_class(by_engine.value) == "DIVIDE_BY_ZERO"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT struct(k, text) AS s FROM typed WHERE k > 1000",
        "SELECT array(struct(k)) AS a, map(k, struct(text)) AS m FROM typed WHERE k > 1000 GROUP BY k, text",
    ],
)
def test_nested_columns_of_no_rows(spark: Any, query: str):
    with settings(spark, IN_DRIVER):
        fast = kquery_plan(spark.sql(query), when="always")
        assert (fast.collect(), fast.take(1), fast.first(), fast.count()) == ([], [], None, 0)
        assert fast.toArrow().schema == spark.sql(query).toArrow().schema


def test_rows_without_columns_are_counted(spark: Any):
    frame = spark.table("typed").select()
    with settings(spark, IN_DRIVER):
        fast = kquery_plan(frame, when="always")
        assert fast.count() == frame.count() > 0
        assert fast.collect() == frame.collect()
        assert not fast.isEmpty()


def test_a_failure_of_the_engine_in_the_driver_is_made_up_for_by_spark(spark: Any, monkeypatch: Any):
    frame = spark.sql("SELECT k, count(*) AS n FROM typed GROUP BY k")

    class Broken:
        def __init__(self, *_: Any) -> None: ...

        def __call__(self, _: Any) -> Any:
            raise RuntimeError("broken on purpose")

    with settings(spark, IN_DRIVER):
        fast = kquery_plan(frame, when="always")
        monkeypatch.setattr(driver, "StageRun", Broken)
        with pytest.warns(FallbackWarning, match="broken on purpose"):
            assert sorted(map(repr, fast.collect())) == sorted(map(repr, frame.collect()))
        with pytest.raises(PythonException, match="broken on purpose"):
            kquery_plan(frame, when="always", fallback="error").toArrow()


def test_what_turns_out_to_be_too_much_for_the_driver_is_a_task_of_spark(spark: Any, monkeypatch: Any):
    def too_large(*_: Any) -> Any:
        raise PySparkException("Total size of serialized results is bigger than spark.driver.maxResultSize")

    with settings(spark, STAGES):
        frame = spark.sql("SELECT k, count(*) AS n FROM typed GROUP BY k")
        fast = fast_of(frame)
        monkeypatch.setattr(driver, "input_frame", too_large)
        assert jobs(spark, fast.collect) > 0
        assert sorted(map(repr, fast.collect())) == sorted(map(repr, frame.collect()))
    with settings(spark, WORKERS):
        fast = fast_of(frame)
        monkeypatch.setattr(fast._kquery.placement.spark, "table", too_large)
        assert sorted(map(repr, fast.collect())) == sorted(map(repr, frame.collect()))


def test_what_the_user_set_for_numpy_and_decimals_does_not_matter(spark: Any):
    frame = spark.sql(
        "SELECT k, max(wide * 7) AS w, avg(price / 7) AS a, sum(double) AS s FROM typed GROUP BY k"
    )
    expected = sorted(map(repr, frame.collect()))
    with settings(spark, IN_DRIVER), np.errstate(all="raise"), decimal.localcontext(decimal.Context(prec=3)):
        assert sorted(map(repr, fast_of(frame).collect())) == expected


def test_stages_that_cannot_be_placed_are_made_up_for_by_spark(spark: Any, monkeypatch: Any):
    frame = spark.sql("SELECT k, count(*) AS n FROM typed GROUP BY k")

    def broken(*_: Any) -> Any:
        raise RuntimeError("no way")

    monkeypatch.setattr("kquery_spark.accelerate.execution.assemble.payload_frame", broken)
    fast = kquery_plan(frame, when="always")
    with pytest.warns(
        FallbackWarning, match="could not add its stages to Spark's plan, so Spark collects the rows.*no way"
    ):
        assert sorted(map(repr, fast.collect())) == sorted(map(repr, frame.collect()))
    fast = kquery_plan(frame, when="always")
    monkeypatch.setattr("kquery_spark.accelerate.execution.assemble.to_dataframe", broken)
    with pytest.warns(
        FallbackWarning, match="could not add its stages to Spark's plan, so Spark runs the query.*no way"
    ):
        assert sorted(map(repr, fast.collect())) == sorted(map(repr, frame.collect()))
    with pytest.raises(RuntimeError, match="no way"):
        kquery_plan(frame, when="always", fallback="error").collect()


def test_a_cached_frame_is_read_from_the_cache(spark: Any):
    with settings(spark, IN_DRIVER):
        fast = fast_of(spark.sql("SELECT k, count(*) AS n FROM typed GROUP BY k"))
        expected = sorted(map(repr, fast.collect()))
        fast.cache()
        try:
            assert "InMemoryTableScan" in fast._jdf.queryExecution().executedPlan().toString()
            assert jobs(spark, fast.collect) > 0
            assert sorted(map(repr, fast.collect())) == expected
            assert fast.toArrow().num_rows == len(expected)
        finally:
            fast.unpersist()


def test_the_session_may_be_enabled(spark: Any):
    frame = spark.sql("SELECT k, count(*) AS n FROM typed GROUP BY k")
    expected = sorted(map(repr, frame.collect()))
    with settings(spark, IN_DRIVER):
        kq.enable(spark)
        try:
            assert jobs(spark, frame.collect) == 0
            assert sorted(map(repr, frame.collect())) == expected
            assert frame.count() == len(expected)
            assert sorted(map(repr, kquery_plan(frame).collect())) == expected
        finally:
            kq.disable(spark)
