"""What ``kq.on_query`` and ``spark.kquery.log`` say of queries: planned, where they ran, what failed; and that they do no harm."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import ConfigError, ConfigWarning
from kquery_spark.runtime.spark.executor import SparkExecutor
from tests.conftest import settings

DRIVER = {"spark.kquery.driverBytes": "8m"}
TASKS = {"spark.kquery.driverBytes": "0"}
GROUPED = "SELECT k, sum(v) AS s FROM observed GROUP BY k"


@pytest.fixture(scope="module", autouse=True)
def observed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("observed")
    pq.write_table(pa.table({"k": [1, 2, 1], "v": [1, 2, 3]}), directory / "1.parquet")
    spark.read.parquet(str(directory)).createOrReplaceTempView("observed")
    yield
    spark.catalog.dropTempView("observed")


@pytest.fixture
def events() -> Iterator[list[kq.QueryEvent]]:
    seen: list[kq.QueryEvent] = []
    remove = kq.on_query(seen.append)
    yield seen
    remove()
    remove()  # a second time is harmless


@pytest.mark.parametrize(("where", "place"), [(DRIVER, "driver"), (TASKS, "tasks")])
def test_a_query_is_planned_and_an_action_ends(
    spark: Any, events: list[kq.QueryEvent], where: dict[str, str], place: str
) -> None:
    with settings(spark, where):
        fast = kq.kquery_plan(spark.sql(GROUPED), when="always")
        assert sorted(fast.collect()) == [(1, 4), (2, 2)]
        assert fast.count() == 2
    assert [(e.kind, e.action, e.place, e.coverage) for e in events] == [
        ("planned", "", place, 1.0),
        ("finished", "collect", place, 1.0),
        ("finished", "count", place, 1.0),
    ]
    assert all(e.seconds > 0 for e in events)
    assert events[0].sentences


def test_what_stays_with_spark_has_its_reason(spark: Any, events: list[kq.QueryEvent]) -> None:
    kq.kquery_plan(spark.sql("SELECT k, uuid() AS u FROM observed"), when="always")
    kq.kquery_plan(spark.range(3))
    declined, passed_on = events
    assert (declined.place, declined.coverage) == ("spark", 0.0)
    assert any("uuid draws a sequence" in sentence for sentence in declined.sentences), declined.sentences
    assert passed_on.place == "spark"
    assert passed_on.sentences


def test_a_failure_of_the_engine_is_reported(
    spark: Any, events: list[kq.QueryEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Any) -> Any:
        raise pa.ArrowInvalid("made up")

    with settings(spark, TASKS):
        fast = kq.kquery_plan(spark.sql(GROUPED), when="always")
        monkeypatch.setattr(SparkExecutor, "table", fails)
        with pytest.warns(kq.FallbackWarning, match="made up"):
            assert len(fast.collect()) == 2
    assert (events[-1].kind, events[-1].place) == ("finished", "spark")
    assert "made up" in str(events[-1].failure)


def test_an_error_of_the_query_is_reported_and_raised(spark: Any, events: list[kq.QueryEvent]) -> None:
    fast = kq.kquery_plan(
        spark.sql("SELECT k, sum(1 div (v - 1)) AS s FROM observed GROUP BY k"), when="always"
    )
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        fast.collect()
    assert events[-1].kind == "failed"
    assert "DIVIDE_BY_ZERO" in str(events[-1].failure)


def test_a_callback_that_fails_changes_nothing(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    def fails(event: kq.QueryEvent) -> None:
        raise ValueError("mine")

    remove = kq.on_query(fails)
    try:
        assert kq.kquery_plan(spark.sql(GROUPED), when="always").count() == 2
    finally:
        remove()
    assert "a callback of kq.on_query failed" in caplog.text


def test_the_log_has_a_line_for_each(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    with settings(spark, TASKS):
        kq.kquery_plan(spark.sql(GROUPED), when="always").collect()
        assert not caplog.records
        with settings(spark, {"spark.kquery.log": "info"}):
            kq.kquery_plan(spark.sql(GROUPED), when="always").collect()
    lines = [record.getMessage() for record in caplog.records if record.name == "kquery_spark.queries"]
    assert [line.split(",")[0] for line in lines] == [
        "planned in tasks of the engine",
        "collect finished in tasks of the engine",
    ]
    assert all(record.levelno == logging.INFO for record in caplog.records)


def test_a_wrong_level_is_named(spark: Any) -> None:
    wrong = pytest.warns(ConfigWarning, match=r"spark\.kquery\.log must be off or info, not 'loud'")
    with settings(spark, {"spark.kquery.log": "loud"}), wrong:
        kq.kquery_plan(spark.sql(GROUPED), when="always")


def test_writes_are_reported(spark: Any, events: list[kq.QueryEvent], tmp_path: Path) -> None:
    kq.kquery_plan(spark.sql(GROUPED), when="always").write.parquet(str(tmp_path / "written"))
    assert [(e.kind, e.action) for e in events] == [("planned", ""), ("finished", "write")]
    assert events[-1].place == "tasks"


def test_spark_writes_the_rows_of_a_query_that_only_the_driver_runs(
    spark: Any, events: list[kq.QueryEvent], tmp_path: Path
) -> None:
    with settings(spark, DRIVER):
        fast = kq.kquery_plan(spark.sql("SELECT k, v + 1 AS w FROM observed"), when="auto")
        assert len(fast.collect()) == 3
        jobs = descriptions(spark, lambda: fast.write.parquet(str(tmp_path / "copied")))
    assert not any("kquery" in text for text in jobs)
    assert [(e.action, e.place) for e in events] == [
        ("", "driver"),
        ("collect", "driver"),
        ("write", "spark"),
    ]


def descriptions(spark: Any, work: Any) -> set[str]:
    """The descriptions of the jobs that ``work`` runs, as Spark's UI shows them: ``Some(text)`` or None."""
    store = spark.sparkContext._jsc.sc().statusStore()
    listener_bus = spark.sparkContext._jsc.sc().listenerBus()

    def jobs() -> dict[int, str]:
        listener_bus.waitUntilEmpty()
        listed = store.jobsList(None)
        each = [listed.apply(number) for number in range(listed.size())]
        return {job.jobId(): str(job.description().toString()) for job in each}

    before = jobs()
    work()
    return {text for number, text in jobs().items() if number not in before}


def test_jobs_of_the_engine_say_what_they_do(spark: Any, tmp_path: Path) -> None:
    spark.sparkContext.setJobDescription(None)  # that of another test's job group
    with settings(spark, TASKS):
        fast = kq.kquery_plan(spark.sql(GROUPED), when="always")
        assert descriptions(spark, fast.count) == {"Some(kquery: scan observed0, aggregate)"}
        written = descriptions(spark, lambda: fast.write.parquet(str(tmp_path / "described")))
        assert written == {"Some(kquery: scan observed0, aggregate)"}
        spark.sparkContext.setJobDescription("mine")
        try:
            assert descriptions(spark, fast.count) == {"Some(mine)"}
        finally:
            spark.sparkContext.setJobDescription(None)
        assert not any("kquery" in text for text in descriptions(spark, spark.range(3).collect))


@pytest.mark.parametrize(
    ("action", "rows"),
    [("collect", 2), ("toArrow", 2), ("toPandas", 2), ("count", None), ("isEmpty", None)],
)
def test_an_action_has_one_event_with_the_number_of_rows(
    spark: Any, events: list[kq.QueryEvent], action: str, rows: int | None
) -> None:
    with settings(spark, {"spark.sql.execution.arrow.pyspark.enabled": "false"}):
        getattr(kq.kquery_plan(spark.sql(GROUPED), when="always"), action)()
    assert [(e.action, e.rows) for e in events] == [("", None), (action, rows)]


def test_metrics_for_prometheus(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    prometheus = pytest.importorskip("prometheus_client")
    registry = prometheus.CollectorRegistry()
    end = kq.export_metrics(registry)
    with pytest.raises(ConfigError, match="in this registry already"):
        kq.export_metrics(registry)
    with settings(spark, {**TASKS, "spark.sql.ansi.enabled": "true"}):
        fast = kq.kquery_plan(spark.sql(GROUPED), when="always")
        fast.collect()
        fast.count()
        kq.kquery_plan(spark.sql("SELECT k, uuid() AS u FROM observed"), when="always")
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            kq.kquery_plan(spark.sql("SELECT sum(1 div (v - 1)) AS s FROM observed"), when="always").collect()
        broken = kq.kquery_plan(spark.sql(GROUPED), when="always")
        monkeypatch.setattr(SparkExecutor, "table", lambda self: pa.array(["x"]).cast(pa.int8()))
        with pytest.warns(kq.FallbackWarning):
            broken.collect()

    def value(name: str, **labels: str) -> float | None:
        number: float | None = registry.get_sample_value(name, labels)
        return number

    assert value("kquery_queries_total", engine="whole") == 3
    assert value("kquery_queries_total", engine="none") == 1
    assert value("kquery_planning_seconds_count") == 4
    assert value("kquery_actions_total", action="collect", place="tasks", outcome="finished") == 1
    assert value("kquery_actions_total", action="count", place="tasks", outcome="finished") == 1
    assert value("kquery_actions_total", action="collect", place="spark", outcome="failed") == 1
    assert value("kquery_actions_total", action="collect", place="spark", outcome="rescued") == 1
    assert value("kquery_action_seconds_count", place="tasks") == 2
    assert value("kquery_rows_total", place="tasks") == 2
    assert value("kquery_rows_total", place="spark") == 2
    assert value("kquery_spilled_bytes_total") == 0
    many = spark.sql("SELECT id % 50000 AS k, count(*) AS n FROM range(100000) GROUP BY id % 50000")
    with settings(spark, {**TASKS, "spark.kquery.memoryBytes": "65536"}):
        monkeypatch.undo()
        assert len(kq.kquery_plan(many, when="always").toArrow()) == 50000
    assert (value("kquery_spilled_bytes_total") or 0) > 50000
    end()
    end()
    fast.count()
    assert value("kquery_actions_total", action="count", place="tasks", outcome="finished") is None
    kq.export_metrics(registry)()  # the names are free again


def test_metrics_without_the_package_are_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match=r"pip install 'kquery-spark\[metrics\]'"):
        kq.export_metrics()


def test_metrics_enter_a_registry_as_a_whole_or_not_at_all() -> None:
    prometheus = pytest.importorskip("prometheus_client")
    registry = prometheus.CollectorRegistry()
    taken = prometheus.Counter("kquery_rows", "Of another program.", registry=registry)
    with pytest.raises(ConfigError, match="in this registry already"):
        kq.export_metrics(registry)
    registry.unregister(taken)
    kq.export_metrics(registry)()
