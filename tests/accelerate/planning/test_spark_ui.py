"""The engine's operators in Spark's UI and event log: the right numbers, at the right place, and without cost for other queries."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.qualify.logs import qualify_logs
from kquery_spark.runtime.spark import ui_reporter as reporter_module
from kquery_spark.spark_bridge.session.bridge import get_bridge
from kquery_spark.spark_bridge.ui.sql_executions import SqlExecutions
from tests.conftest import settings
from tests.support.event_logs import logged_events

# no build side stays in a worker, so that each run scans all
TASKS = {"spark.kquery.driverBytes": "0", "spark.kquery.smallBytes": "1", "spark.kquery.keptBytes": "0"}
DRIVER = {"spark.kquery.driverBytes": "8m"}
ROWS = 600_000
QUERY = """
    SELECT a.k, sum(a.v) AS s FROM shown a JOIN (SELECT k, max(v) AS m FROM shown GROUP BY k) b ON a.k = b.k
    WHERE a.v >= 450000 GROUP BY a.k ORDER BY s DESC
"""
_WAIT_SECONDS = 20.0


@dataclass(frozen=True)
class Shown:
    """An execution as Spark's status store has it. nodes: title, text and metrics of each."""

    number: int
    root: int
    description: str
    jobs: int
    seconds: float
    text: str
    nodes: tuple[tuple[str, str, dict[str, str]], ...]

    @property
    def is_of_the_engine(self) -> bool:
        return self.nodes[0][0].startswith("kquery") or self.nodes[-1][0].startswith("kquery")


def shown_in(store: Any, after: int = -1) -> list[Shown]:
    """The finished executions of a SQLAppStatusStore with numbers above ``after``, in their order."""
    listing, known = store.executionsList(), []
    for i in reversed(range(listing.size())):
        one = listing.apply(i)
        number = one.executionId()
        if number <= after:
            break
        if one.completionTime().isEmpty():
            continue
        values, nodes, graph = store.executionMetrics(number), [], store.planGraph(number).allNodes()
        for j in range(graph.size()):
            node, metrics = graph.apply(j), {}
            for m in range(node.metrics().size()):
                metric = node.metrics().apply(m)
                value = values.get(metric.accumulatorId())
                metrics[metric.name()] = value.get() if value.isDefined() else ""
            nodes.append((node.name(), node.desc(), metrics))
        seconds = (one.completionTime().get().getTime() - one.submissionTime()) / 1000
        text = one.physicalPlanDescription()
        known.append(
            Shown(
                number,
                one.rootExecutionId(),
                one.description(),
                one.jobs().size(),
                seconds,
                text,
                tuple(nodes),
            )
        )
    return known[::-1]


class Ui:
    """What the session's status store gets while a test runs."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self.store = spark._jsparkSession.sharedState().statusStore()
        listing = self.store.executionsList()
        self._before = listing.last().executionId() if listing.size() else -1

    def of_the_engine(self, count: int) -> list[Shown]:
        """The engine's executions, once there are ``count`` of them."""
        end = time.monotonic() + _WAIT_SECONDS
        while len(found := [one for one in self.all() if one.is_of_the_engine]) < count:
            assert time.monotonic() < end, found
            time.sleep(0.05)
        assert len(found) == count
        with reporter_module._reporters[self._spark.sparkContext]._posting:  # to all queues of listeners
            return found

    def all(self) -> list[Shown]:
        self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        return shown_in(self.store, self._before)


@pytest.fixture(scope="module", autouse=True)
def shown(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    path = str(tmp_path_factory.mktemp("shown") / "t.parquet")
    values = np.arange(ROWS)
    pq.write_table(pa.table({"k": values % 50, "v": values}), path, row_group_size=ROWS // 4)
    spark.read.parquet(path).createOrReplaceTempView("shown")
    yield
    spark.catalog.dropTempView("shown")


@pytest.fixture
def ui(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ui]:
    """As if this session had a UI: its status store is there without."""
    context = spark.sparkContext
    stop = context.stop
    monkeypatch.setattr(reporter_module, "shows_executions", lambda _: True)
    reporter_module._reporters.pop(context, None)
    yield Ui(spark)
    operators = reporter_module._reporters.pop(context, None)
    if operators is not None:
        operators.end()
    context.stop = stop


def test_a_query_in_tasks_shows_below_the_execution_of_spark(spark: Any, ui: Ui) -> None:
    with settings(spark, TASKS):
        explained = kq.explain(spark.sql(QUERY), analyze=True)
        ui.of_the_engine(1)
        fast = kquery_plan(spark.sql(QUERY), when="always")
        result = fast.collect()
        _, engine = ui.of_the_engine(2)
    (runs,) = (one for one in ui.all() if one.number == engine.root)
    assert runs.jobs
    assert not engine.jobs
    assert any("kquery stage-1(" in text for name, text, _ in runs.nodes if name.endswith("MapInArrow"))
    assert engine.description.startswith("kquery: scan t, scan t, aggregate, join, aggregate")

    (stages,) = explained.stages
    expected = sorted(
        (label.strip(), f"{metrics.rows:,}") for stage in stages for label, metrics in stage.metrics.operators
    )
    operators = {text: metrics for name, text, metrics in engine.nodes if not name.startswith("kquery")}
    assert sorted((text, metrics["number of output rows"]) for text, metrics in operators.items()) == expected
    (scan,) = (metrics for text, metrics in operators.items() if "filters=" in text)
    assert (scan["number of output rows"], scan["splits read"], scan["splits pruned"]) == (
        "150,000",
        "1",
        "3",
    )
    assert scan["data size"].endswith("MiB")
    assert scan["bytes read"].endswith("KiB")
    assert int(scan["reads"]) > 0
    assert all(metrics["time in operator"] for metrics in operators.values())
    tasks = {name: metrics["tasks"] for name, _, metrics in engine.nodes if name.startswith("kquery")}
    assert tasks == {f"kquery {stage.stage_id}": f"{stage.tasks}" for stage in stages}
    assert f"[number of output rows: {len(result)}," in engine.text


def test_writes_counts_and_frames_on_top_show_their_operators(spark: Any, ui: Ui, tmp_path: Path) -> None:
    with settings(spark, TASKS):
        fast = kquery_plan(spark.sql(QUERY), when="always")
        fast.write.parquet(str(tmp_path / "written"))
        assert fast.count() == 50
        assert fast.groupBy().max("k").collect() == [(49,)]
        engine = ui.of_the_engine(3)
    runs = {one.number: one for one in ui.all()}
    assert all(runs[one.root].jobs for one in engine)
    assert all(any(name == "JoinExec" for name, *_ in one.nodes) for one in engine)


def test_spilled_bytes_are_in_the_metrics_of_the_operator_and_of_sparks_tasks(spark: Any, ui: Ui) -> None:
    query = "SELECT max(n) AS n FROM (SELECT count(*) OVER (PARTITION BY v % 3 ORDER BY v) AS n FROM shown)"
    with settings(spark, {**TASKS, "spark.kquery.memoryBytes": "1m"}):
        assert kquery_plan(spark.sql(query), when="always").collect() == [(ROWS // 3,)]
        (engine,) = ui.of_the_engine(1)
    spilled = [metrics["spill size"] for _, _, metrics in engine.nodes if "spill size" in metrics]
    assert spilled
    assert all(size.endswith("MiB") for size in spilled)
    of_the_session, of_the_context = ui.store, spark.sparkContext._jsc.sc().statusStore()
    stages = of_the_session.execution(engine.root).get().stages().toSeq()
    numbers = [stages.apply(i) for i in range(stages.size())]
    shown = spark.sparkContext.statusTracker()  # a long session forgets the skipped stages of a job first
    attempts = [of_the_context.lastStageAttempt(number) for number in numbers if shown.getStageInfo(number)]
    assert sum(attempt.diskBytesSpilled() for attempt in attempts) > 1 << 20


@pytest.mark.parametrize("threads", [False, True])
def test_the_driver_has_executions_of_its_own(spark: Any, ui: Ui, threads: bool) -> None:
    where = {"spark.kquery.smallBytes": "1", "spark.kquery.threadBytes": "32m" if threads else "0"}
    with settings(spark, {**DRIVER, **where}):
        fast = kquery_plan(spark.sql("SELECT k, sum(v) AS s FROM shown GROUP BY k ORDER BY k"), when="always")
        assert len(fast.collect()) == 50
        (first,) = ui.of_the_engine(1)
        assert fast.count() == 50
        _, second = ui.of_the_engine(2)
    rows = [m["number of output rows"] for name, _, m in first.nodes if name == "ScanExec"]
    assert rows == ["600,000"]
    assert any("in the driver" in text for _, text, _ in first.nodes)
    assert (first.root == first.number) == threads  # without threads Spark's tasks run the first stage
    assert second.root == second.number
    assert not second.jobs


def test_nothing_is_shown_without_a_ui(spark: Any, ui: Ui, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge = get_bridge(spark)
    with settings(spark, {**TASKS, "spark.kquery.uiMetrics": "false"}):
        assert reporter_module.ui_reporter(bridge, bridge.config()) is None
        assert len(kquery_plan(spark.sql(QUERY), when="always").collect()) == 50
    monkeypatch.undo()
    assert (
        reporter_module.ui_reporter(bridge, bridge.config()) is None
    )  # this session has no UI and no event log
    assert not [one for one in ui.all() if one.is_of_the_engine]


def test_strings_are_left_out_where_the_session_redacts_them(spark: Any, ui: Ui) -> None:
    for where in (TASKS, DRIVER):
        with settings(spark, {**where, "spark.sql.redaction.string.regex": "450000"}):
            kquery_plan(spark.sql(QUERY), when="always").collect()
    for one in ui.of_the_engine(2):
        assert one.description.startswith("kquery: scan, ")
        assert all(text == name for name, text, _ in one.nodes if not name.startswith("kquery"))
        assert "filters" not in one.text


def test_the_event_log_has_the_same_and_qualify_leaves_it_out(spark: Any, ui: Ui, tmp_path: Path) -> None:
    with logged_events(spark, tmp_path / "log", rolling_enabled="false", compress="false"):
        with settings(spark, TASKS):
            kquery_plan(spark.sql(QUERY), when="always").collect()
        live = ui.all() if ui.of_the_engine(1) else []
    jvm = spark.sparkContext._jvm
    conf = spark.sparkContext._jsc.sc().conf()
    kept = jvm.org.apache.spark.status.ElementTrackingStore(
        jvm.org.apache.spark.util.kvstore.InMemoryStore(), conf
    )
    status = jvm.org.apache.spark.sql.execution.ui
    history = status.SQLAppStatusListener(conf, kept, False)
    (log,) = (tmp_path / "log").iterdir()
    for line in log.read_text().splitlines():
        event = jvm.org.apache.spark.util.JsonProtocol.sparkEventFromJson(line)
        if '"SparkListenerJob' in line:
            (history.onJobStart if "JobStart" in line else history.onJobEnd)(event)
        elif "execution.ui." in line:
            history.onOtherEvent(event)
    # The listener computes metrics and writes the end of an execution in a thread of the store. This waits for it, as Spark's
    # history server does.
    kept.close(False)
    replayed = shown_in(status.SQLAppStatusStore(kept, jvm.scala.Option.empty()))
    assert [one for one in replayed if one.is_of_the_engine] == [o for o in live if o.is_of_the_engine]
    assert [one.number for one in replayed] == [one.number for one in live]
    qualified = qualify_logs(tmp_path / "log")
    assert (qualified.queries, qualified.accelerated) == ((), 1)


def test_a_failure_to_show_leaves_queries_alone(
    spark: Any, ui: Ui, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any) -> int:
        raise OSError("made up")

    monkeypatch.setattr(SqlExecutions, "post", fails)
    with settings(spark, TASKS), caplog.at_level(logging.WARNING, "kquery_spark.ui"):
        for _ in range(2):
            assert len(kquery_plan(spark.sql(QUERY), when="always").collect()) == 50
            time.sleep(0.5)
    assert [record.getMessage() for record in caplog.records] == [
        "the engine's operators no longer appear in Spark's UI: made up"
    ]
