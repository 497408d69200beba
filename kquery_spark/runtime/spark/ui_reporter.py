"""UiReporter: adds the engine's operators and their metrics to Spark's UI and event log.

A thread of the driver posts the reports of a query after the Spark execution that ran its tasks has ended, so no action
waits for this. The operators are shown as a separate execution below Spark's. They cannot be added to Spark's own graph:
adaptive execution replaces the whole graph after each stage, and an update after the end of the execution would make
Spark's listener start a new, empty one with the same id.
"""

from __future__ import annotations

import itertools
import logging
import threading
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext
from typing_extensions import override

from kquery_spark.config.engine import EngineConfig
from kquery_spark.runtime.spark.operator_meter import DriverMeter, Inbox, OperatorMeter, Receiver, Reports
from kquery_spark.runtime.spark.operator_reports import StageReport, split_counts
from kquery_spark.runtime.spark.operator_tree import finished_execution
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.ui.sql_executions import (
    SqlExecutions,
    before_stop,
    redacts_strings,
    shows_executions,
)
from kquery_spark.stages.graph import StageGraph

_LOGGER = logging.getLogger("kquery_spark.ui")
_MIN_POLL_SECONDS, _MAX_POLL_SECONDS, _POLL_GROWTH = 0.1, 2.0, 1.5
"""The pause between two checks whether executions have ended. It grows while a query runs."""
_MAX_PENDING = 1000
"""The number of queries whose reports may wait for the end of their executions. Reports of further queries are dropped."""

# Numbers of queries that the driver runs. All other queries have smaller numbers: CRC-32 checksums of their graphs.
_driver_queries = itertools.count(1 << 32)
_reporters: weakref.WeakKeyDictionary[SparkContext, UiReporter | None] = weakref.WeakKeyDictionary()


class UiReporter(Receiver):
    """Collects the reports of the operators in one Spark context and posts them, query by query."""

    def __init__(self, bridge: Bridge) -> None:
        context = bridge.spark.sparkContext
        self._executions = SqlExecutions(context, bridge.jvm)
        self._accumulator = context.accumulator([], Inbox(self))
        # Reports of Spark's tasks: by execution and query, then by stage.
        self._by_tasks: dict[tuple[int, int], dict[str, StageReport]] = {}
        # Finished runs in the driver, and whether their strings are redacted.
        self._by_driver: list[tuple[DriverMeter, bool]] = []
        self._in_driver: set[int] = set()  # the numbers of queries that are running in the driver
        self._lock = threading.Lock()
        self._posting = threading.Lock()
        self._arrived = threading.Event()
        self._ended = threading.Event()
        threading.Thread(target=self._watch, name="kquery-ui", daemon=True).start()
        before_stop(context, self.end)

    def meter(self, graph: StageGraph, query: int | None = None) -> OperatorMeter | None:
        """Return the meter for a query's Spark tasks. query: its number, if the driver runs a part of it.

        Equal graphs get equal meters, so that Spark still recognizes equal exchanges and reuses them.
        """
        if self._ended.is_set():
            return None
        try:
            splits = {stage.stage_id: split_counts(stage) for stage in graph.stages}
        except Exception as error:
            self._give_up(error)
            return None
        number = zlib.crc32(str(graph).encode()) if query is None else query
        return OperatorMeter(self._accumulator, number, splits)

    @contextmanager
    def driver_run(self, bridge: Bridge) -> Iterator[DriverMeter]:
        """Provide the meter for a run in the driver. Stages that Spark's tasks run for it are shown together with it.

        If a run fails, only these stages are shown.
        """
        meter = DriverMeter(next(_driver_queries))
        try:
            redacted = redacts_strings(bridge)
        except Exception:
            redacted = True
        with self._lock:
            self._in_driver.add(meter.query)
        finished = False
        try:
            yield meter
            finished = True
        finally:
            with self._lock:
                self._in_driver.discard(meter.query)
                if finished and len(self._by_driver) < _MAX_PENDING:
                    self._by_driver.append((meter, redacted))
            self._arrived.set()

    @override
    def receive(self, reports: Reports) -> None:
        if self._ended.is_set():
            return
        try:
            with self._lock:
                for report in reports:
                    self._add(report)
            self._arrived.set()
        except Exception as error:
            self._give_up(error)

    def _add(self, report: StageReport) -> None:
        assert report.execution is not None
        key = report.execution.execution_id, report.query
        if key not in self._by_tasks and len(self._by_tasks) >= _MAX_PENDING:
            return
        stages = self._by_tasks.setdefault(key, {})
        known = stages.get(report.stage_id)
        stages[report.stage_id] = report if known is None else known.merged(report)

    def end(self) -> None:
        """Post all reports, even of executions that have not ended, and stop, because the Spark context is about to stop."""
        try:
            self._post(everything=True)
        finally:
            self._ended.set()
            self._arrived.set()

    def _watch(self) -> None:
        while not self._ended.is_set():
            self._arrived.wait()
            self._arrived.clear()
            try:
                pause = _MIN_POLL_SECONDS
                while self._post(everything=False) and not self._ended.wait(pause):
                    pause = min(pause * _POLL_GROWTH, _MAX_POLL_SECONDS)
            except Exception as error:
                self._give_up(error)

    def _post(self, everything: bool) -> bool:
        """Post the reports of queries that have ended. Return whether reports of other queries are waiting."""
        with self._posting:
            for reports, redacted in self._take(everything):
                self._executions.post(finished_execution(reports, redacted))
            with self._lock:
                return bool(self._by_tasks)

    def _take(self, everything: bool) -> Iterator[tuple[Reports, bool]]:
        """Yield the reports of each query that has ended, and whether its session redacts strings."""
        with self._lock:
            by_driver, self._by_driver = self._by_driver, []
            keys = [key for key in self._by_tasks if everything or key[1] not in self._in_driver]
        for meter, redacted in by_driver:
            stages = [self._pop_reports(key) for key in keys if key[1] == meter.query]
            reports = [report for some in stages for report in some]
            reports += _merged(meter.reports)
            if reports:
                yield reports, redacted
        for key in keys:
            if everything or not self._executions.is_running(key[0]):
                reports = self._pop_reports(key)
                if reports:
                    yield reports, any(r.execution is not None and r.execution.redacted for r in reports)

    def _pop_reports(self, key: tuple[int, int]) -> Reports:
        with self._lock:
            return list(self._by_tasks.pop(key, {}).values())

    def _give_up(self, error: Exception) -> None:
        """Stop reporting operators in this context, and log that once."""
        if not self._ended.is_set():
            self._ended.set()
            _LOGGER.warning("the engine's operators no longer appear in Spark's UI: %s", error)


def _merged(reports: Reports) -> Reports:
    """Merge the reports into one per stage."""
    stages: dict[str, StageReport] = {}
    for report in reports:
        known = stages.get(report.stage_id)
        stages[report.stage_id] = report if known is None else known.merged(report)
    return list(stages.values())


def ui_reporter(bridge: Bridge, config: EngineConfig) -> UiReporter | None:
    """Return the reporter of the session's Spark context; None if nothing shows or logs executions, or it is disabled."""
    if not config.ui_metrics:
        return None
    context = bridge.spark.sparkContext
    if context not in _reporters:
        try:
            _reporters[context] = UiReporter(bridge) if shows_executions(context) else None
        except Exception as error:
            _reporters[context] = None
            _LOGGER.warning("the engine's operators do not appear in Spark's UI: %s", error)
    return _reporters[context]
