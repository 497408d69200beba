"""Actions whose work is in the driver are cancelled as Spark's jobs are, and Ctrl-C stops them: within a second, for good."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark import InheritableThread

from kquery_spark import kquery_plan
from kquery_spark.accelerate.execution.dataframe import execution_of
from kquery_spark.accelerate.planning.part import Part
from kquery_spark.physical.operators import ScanExec
from kquery_spark.physical.worker_cache import worker_cache
from kquery_spark.run_control import RunControl
from kquery_spark.runtime.spark import driver
from kquery_spark.spark_bridge.session import cancellation
from kquery_spark.spark_bridge.session.failures import error_class
from tests.accelerate.driver.test_driver import IN_DRIVER, STAGES, WORKERS
from tests.conftest import exhaustive, settings

QUERY = "SELECT k, count(*) AS c, sum(v) AS s FROM slow GROUP BY k ORDER BY k"
ENDLESS = (
    "SELECT max(a.v + b.v + c.v + d.v) AS m FROM slow AS a JOIN slow AS b ON a.k = b.k JOIN slow AS c ON b.k = c.k "
    "JOIN slow AS d ON c.k = d.k"
)
BY_STAGE = {**IN_DRIVER, "spark.kquery.threadBytes": "0"}
BY_THREADS = {**IN_DRIVER, "spark.kquery.smallBytes": "1m"}
SECONDS = 2.0  # one, and what a busy machine adds


@pytest.fixture(scope="module", autouse=True)
def slow(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("slow")
    rows = {"k": [i % 3 for i in range(600_000)], "v": pa.array(range(600_000))}
    pq.write_table(pa.table(rows), directory / "1.parquet", row_group_size=100_000)
    spark.read.parquet(str(directory)).createOrReplaceTempView("slow")
    yield
    spark.catalog.dropTempView("slow")


class Slow:
    """Scans that take a minute, and whether one has begun."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.on = True

    def scan(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def execute(plan: ScanExec, task: Any) -> Iterator[Any]:
            for batch in original(plan, task):
                self.begun.set()
                for _ in range(1000 if self.on else 0):
                    time.sleep(0.06)
                    yield batch.slice(0, 1)
                yield batch

        return execute


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> Slow:
    found = Slow()
    monkeypatch.setattr(ScanExec, "execute", found.scan(ScanExec.execute))
    monkeypatch.setattr(driver, "MAX_DRIVER_SECONDS", 60.0)
    return found


def in_driver(spark: Any, threads: bool) -> Any:
    fast = spark.sql(QUERY).transform(kquery_plan, when="always", fallback="error")
    work = execution_of(fast).placement.driver
    assert work is not None and (work._threaded() is not None) is threads
    return fast


def tasks() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("kquery-task")]


class Running:
    """An action in a thread of its own."""

    def __init__(self, action: Callable[[], Any], prepare: Callable[[], Any] = lambda: None) -> None:
        self.error: BaseException | None = None
        self.result: Any = None

        def work() -> None:
            prepare()
            try:
                self.result = action()
            except BaseException as error:
                self.error = error

        self.thread = InheritableThread(target=work)
        self.thread.start()

    def ends(self, seconds: float) -> bool:
        self.thread.join(seconds)
        return not self.thread.is_alive()


CANCELS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    # what is set before, what does not cancel it, what does
    "cancelJobGroup": (
        lambda spark: spark.sparkContext.setJobGroup("mine", "text"),
        lambda spark: spark.sparkContext.cancelJobGroup("another"),
        lambda spark: spark.sparkContext.cancelJobGroup(groupId="mine"),
    ),
    "cancelJobsWithTag": (
        lambda spark: spark.sparkContext.addJobTag("mine"),
        lambda spark: spark.sparkContext.cancelJobsWithTag("min"),
        lambda spark: spark.sparkContext.cancelJobsWithTag("mine"),
    ),
    "cancelAllJobs": (
        lambda spark: None,
        lambda spark: spark.sparkContext.cancelJobGroup("mine"),
        lambda spark: spark.sparkContext.cancelAllJobs(),
    ),
    "interruptAll": (
        lambda spark: None,
        lambda spark: spark.newSession().interruptAll(),
        lambda spark: spark.interruptAll(),
    ),
    "interruptTag": (
        lambda spark: spark.addTag("mine"),
        lambda spark: (spark.interruptTag("another"), spark.newSession().interruptTag("mine")),
        lambda spark: spark.interruptTag("mine"),
    ),
}


@pytest.mark.parametrize("name", CANCELS)
@pytest.mark.parametrize("where", [BY_STAGE, BY_THREADS], ids=["stage", "threads"])
def test_what_cancels_a_job_cancels_work_in_the_driver(
    spark: Any, scans: Slow, where: dict[str, str], name: str
):
    prepare, another, cancel = CANCELS[name]
    with settings(spark, where):
        fast = in_driver(spark, where is BY_THREADS)
        running = Running(fast.collect, lambda: prepare(spark))
        assert scans.begun.wait(30)
        another(spark)
        assert not running.ends(0.5)
        cancel(spark)
        assert running.ends(SECONDS)
        assert isinstance(running.error, Py4JJavaError)
        assert error_class(running.error) == "SPARK_JOB_CANCELLED"
        assert not tasks() and not cancellation._running
        scans.on = False
        assert [row.c for row in fast.collect()] == [200_000] * 3


@pytest.fixture
def endless(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A join of 10^20 rows that threads of the driver compute, without a limit and without a scan that waits."""
    monkeypatch.setattr(Part, "is_bounded", True)
    monkeypatch.setattr(driver, "MAX_DRIVER_SECONDS", 600.0)
    monkeypatch.setattr(driver, "_MAX_ROWS", 1 << 80)
    monkeypatch.setattr(driver, "_MAX_BYTES", 1 << 80)
    with settings(spark, BY_THREADS):
        fast = spark.sql(ENDLESS).transform(kquery_plan, when="always", fallback="error")
        work = execution_of(fast).placement.driver
        assert work is not None and work._threaded() is not None
        yield fast


def joins() -> bool:
    """Whether a thread of the engine is in a join at this moment."""
    frames = sys._current_frames()
    stacks = (traceback.extract_stack(frames[t.ident]) for t in tasks() if t.ident in frames)
    return any("/physical/joins/" in frame.filename for stack in stacks for frame in stack)


def arrow_bytes() -> int:
    """Arrow memory that this process holds, without what it keeps for further queries."""
    worker_cache().clear()
    gc.collect()
    return int(pa.total_allocated_bytes())


def wait_until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def plain_error(spark: Any, prepare: Callable[[Any], Any], cancel: Callable[[Any], Any]) -> Any:
    """What plain Spark raises for a query of one stage that is cancelled in the same way."""
    endless = spark.range(10**15).selectExpr("max(id % 7) AS m")
    running = Running(endless.collect, lambda: prepare(spark))
    wait_until(spark.sparkContext.statusTracker().getActiveJobsIds)
    deadline = time.monotonic() + 60
    cancel(spark)
    while not running.ends(1):  # the cancel came between two jobs
        assert time.monotonic() < deadline
        cancel(spark)
    return running.error


@pytest.mark.parametrize("name", CANCELS)
def test_a_join_that_does_not_end_is_cancelled_as_in_spark(spark: Any, endless: Any, name: str):
    prepare, _, cancel = CANCELS[name]
    before = arrow_bytes()
    running = Running(endless.collect, lambda: prepare(spark))
    wait_until(joins)
    cancel(spark)
    assert running.ends(SECONDS)
    assert not tasks() and not cancellation._running
    assert arrow_bytes() - before < 1 << 20
    assert error_class(running.error) == "SPARK_JOB_CANCELLED"  # type: ignore[arg-type]
    if name != "interruptTag":  # by which Spark 4.3 cancelled nothing of another thread
        expected = plain_error(spark, prepare, cancel)
        assert type(running.error) is type(expected)
        assert error_class(running.error) == error_class(expected)  # type: ignore[arg-type]
    assert spark.range(3).count() == 3


def test_ctrl_c_stops_a_join_that_does_not_end(spark: Any, endless: Any):
    before = arrow_bytes()
    begun, interrupted = threading.Event(), list[float]()
    watch = threading.Thread(target=lambda: (wait_until(joins), begun.set()))
    timer = threading.Thread(target=_interrupt, args=(begun, interrupted))
    watch.start()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        endless.collect()
    assert time.monotonic() - interrupted[0] < SECONDS
    watch.join()
    timer.join()
    assert not tasks() and not cancellation._running
    assert arrow_bytes() - before < 1 << 20
    assert spark.range(3).count() == 3


@pytest.mark.parametrize(
    "where", [STAGES, pytest.param(WORKERS, marks=exhaustive)], ids=["gathered rows", "result"]
)
def test_jobs_of_the_engine_are_cancelled(spark: Any, monkeypatch: Any, where: dict[str, str]):
    monkeypatch.setattr(Part, "is_bounded", True)
    with settings(spark, where):
        fast = spark.sql(ENDLESS).transform(kquery_plan, when="always")
        placement = execution_of(fast).placement
        assert (placement.driver is None) is (where is WORKERS)
        for cancel in (spark.interruptAll, spark.sparkContext.cancelAllJobs):
            running = Running(fast.collect)
            tracker = spark.sparkContext.statusTracker()
            for _ in range(300):
                if tracker.getActiveJobsIds():
                    break
                time.sleep(0.1)
            time.sleep(1)
            cancel()
            assert running.ends(10)
            assert error_class(running.error) == "SPARK_JOB_CANCELLED"  # type: ignore[arg-type]
            assert not tracker.getActiveJobsIds()
        assert spark.range(3).count() == 3


@pytest.mark.parametrize("where", [BY_STAGE, BY_THREADS], ids=["stage", "threads"])
def test_ctrl_c_stops_work_in_the_driver(spark: Any, scans: Slow, where: dict[str, str]):
    with settings(spark, where):
        fast = in_driver(spark, where is BY_THREADS)
        interrupted: list[float] = []
        timer = threading.Thread(target=_interrupt, args=(scans.begun, interrupted))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            fast.collect()
        assert time.monotonic() - interrupted[0] < SECONDS
        timer.join()
        assert not tasks() and not cancellation._running
        scans.on = False
        assert [row.c for row in fast.collect()] == [200_000] * 3


def test_ctrl_c_stops_a_job_of_the_engine(spark: Any, monkeypatch: Any):
    monkeypatch.setattr(Part, "is_bounded", True)
    for where in (STAGES, WORKERS):
        with settings(spark, where):
            fast = spark.sql(ENDLESS).transform(kquery_plan, when="always")
            tracker = spark.sparkContext.statusTracker()
            begun = threading.Event()

            def wait_for_job(tracker: Any = tracker, begun: threading.Event = begun) -> None:
                while not tracker.getActiveJobsIds():
                    time.sleep(0.1)
                begun.set()

            threading.Thread(target=wait_for_job, daemon=True).start()
            interrupted: list[float] = []
            timer = threading.Thread(target=_interrupt, args=(begun, interrupted))
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                fast.collect()
            assert time.monotonic() - interrupted[0] < 10
            timer.join()
            time.sleep(1)
            assert not tracker.getActiveJobsIds()  # and none is started again


def _interrupt(begun: threading.Event, when: list[float]) -> None:
    begun.wait(60)
    time.sleep(0.5)
    when.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)


def test_a_cancel_during_the_last_moments_is_no_start_of_a_job(spark: Any, scans: Slow, monkeypatch: Any):
    """The work is too much for the driver, and cancelled as it is noticed: Spark's tasks do not take over."""
    monkeypatch.setattr(driver, "_MAX_ROWS", 10)

    def too_late(*_: Any) -> Any:
        raise AssertionError("a job was started")

    with settings(spark, BY_STAGE):
        fast = in_driver(spark, False)
        monkeypatch.setattr(execution_of(fast), "frame", too_late)
        limit = cancellation.RunControl.add

        def cancelled(control: Any, rows: int, nbytes: int = 0) -> None:
            try:
                limit(control, rows, nbytes)
            finally:
                if control.rows > 10:
                    spark.sparkContext.cancelAllJobs()

        monkeypatch.setattr(cancellation.RunControl, "add", cancelled)
        with pytest.raises(Py4JJavaError, match="SPARK_JOB_CANCELLED"):
            fast.collect()


def test_a_group_is_found_by_name_and_a_wrong_call_is_pysparks_to_reject(monkeypatch):
    class Context:
        def cancelJobGroup(self, groupId: str, reason: str | None = None) -> str:
            return f"{groupId} {reason}"

    class Work:
        control = RunControl()

        def has_group(self, group: str) -> bool:
            return group == "mine"

    monkeypatch.setattr(cancellation, "_running", {Work()})
    cancellation._wrap(Context, "cancelJobGroup", lambda work, _, group: work.has_group(group), "part of {}")
    with pytest.raises(TypeError, match="groupId"):
        Context().cancelJobGroup()
    assert Context().cancelJobGroup(reason="mine", groupId="other") == "other mine"
    assert Work.control.cancelled is None
    assert Context().cancelJobGroup(reason="late", groupId="mine") == "mine late"
    assert Work.control.cancelled == "part of mine"
