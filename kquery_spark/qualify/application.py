"""Assembles the queries of one application from the events of its log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kquery_spark.qualify.event_files import Event, EventLog, EventReader
from kquery_spark.qualify.plan import PhysicalNode, read_plan
from kquery_spark.runtime.spark.operator_tree import ENGINE_NODE

_EXECUTION_ID = "spark.sql.execution.id"
_SQL_METRIC = "sql"  # the metadata of accumulators that are metrics of plan nodes


@dataclass
class StageWork:
    """Sums over the tasks of a stage. ``accumulators``: the plan nodes' metrics that the tasks updated."""

    tasks: int = 0
    run_seconds: float = 0.0
    cpu_seconds: float = 0.0
    bytes_read: int = 0
    shuffle_bytes: int = 0
    accumulators: set[int] = field(default_factory=set)

    def add(self, event: Event) -> None:
        """Add a finished task, successful or not."""
        metrics = event.get("Task Metrics") or {}
        self.tasks += 1
        self.run_seconds += metrics.get("Executor Run Time", 0) / 1e3
        self.cpu_seconds += metrics.get("Executor CPU Time", 0) / 1e9
        self.bytes_read += (metrics.get("Input Metrics") or {}).get("Bytes Read", 0)
        self.shuffle_bytes += (metrics.get("Shuffle Write Metrics") or {}).get("Shuffle Bytes Written", 0)


@dataclass
class QueryRun:
    """One execution of a query. ``values``: metrics by accumulator. ``seconds`` is None while it runs."""

    number: int
    description: str
    start: float
    plan: PhysicalNode
    end: float | None = None
    error: str = ""
    stages: dict[int, StageWork] = field(default_factory=dict)
    spans: list[tuple[float, float]] = field(default_factory=list)
    values: dict[int, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        """Wall-clock seconds from start to end."""
        return None if self.end is None else max(0.0, self.end - self.start)

    @property
    def stage_seconds(self) -> float:
        """Seconds during which at least one stage ran."""
        covered, last = 0.0, float("-inf")
        for begin, end in sorted(self.spans):
            covered += max(0.0, end - max(begin, last))
            last = max(last, end)
        return covered

    def total(self, name: str) -> float:
        """The sum of a field of ``StageWork`` over the stages."""
        return sum(float(getattr(stage, name)) for stage in self.stages.values())


class Application:
    """Reads a log once, as a stream, and yields each query when it ends.

    Only the queries that run at the current point of the log are in memory, with sums over their tasks. After the last one,
    ``truncated`` tells whether the log was cut off, and ``other_task_seconds`` has the time of tasks outside of queries.
    """

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.name = ""
        self.id = ""
        self.spark_version = ""
        self.truncated = False
        self.other_task_seconds = 0.0
        self._running: dict[int, QueryRun] = {}
        self._query_of: dict[int, int] = {}  # by stage
        self._stages_of: dict[int, list[int]] = {}  # by job

    def queries(self) -> Iterator[QueryRun]:
        """The queries in the order in which they end, then those that never ended."""
        reader = EventReader(self.log)
        for event in reader:
            name = event["Event"].rpartition(".")[2]
            if name == "SparkListenerSQLExecutionEnd":
                ended = self._running.pop(int(event["executionId"]), None)
                if ended is not None:
                    ended.end = event["time"] / 1e3
                    ended.error = str(event.get("errorMessage") or "")
                    yield ended
            elif handler := _HANDLERS.get(name):
                handler(self, event)
        self.truncated = reader.truncated
        yield from self._running.values()
        self._running.clear()

    def _log_start(self, event: Event) -> None:
        self.spark_version = str(event.get("Spark Version", ""))

    def _application_start(self, event: Event) -> None:
        self.name = str(event.get("App Name", ""))
        self.id = str(event.get("App ID", ""))

    def _execution_start(self, event: Event) -> None:
        number = int(event["executionId"])
        plan = read_plan(event.get("sparkPlanInfo") or {})
        if plan.name.startswith(ENGINE_NODE):
            return  # what the engine did for another execution, or in the driver
        description = str(event.get("description") or "")
        self._running[number] = QueryRun(number, description, event["time"] / 1e3, plan)

    def _plan_update(self, event: Event) -> None:
        run = self._running.get(int(event["executionId"]))
        if run is not None and event.get("sparkPlanInfo"):
            run.plan = read_plan(event["sparkPlanInfo"])

    def _driver_updates(self, event: Event) -> None:
        run = self._running.get(int(event["executionId"]))
        if run is not None:
            for update in event.get("accumUpdates", ()):
                _add(run.values, int(update[0]), update[1])

    def _job_start(self, event: Event) -> None:
        number = (event.get("Properties") or {}).get(_EXECUTION_ID)
        if number is None or int(number) not in self._running:
            return
        stages = [int(stage) for stage in event.get("Stage IDs", ())]
        self._stages_of[int(event["Job ID"])] = stages
        self._query_of.update(dict.fromkeys(stages, int(number)))

    def _job_end(self, event: Event) -> None:
        for stage in self._stages_of.pop(int(event["Job ID"]), ()):
            self._query_of.pop(stage, None)

    def _stage_end(self, event: Event) -> None:
        info = event.get("Stage Info") or {}
        run = self._run_of(info.get("Stage ID"))
        begin, end = info.get("Submission Time"), info.get("Completion Time")
        if run is not None and begin is not None and end is not None:
            run.spans.append((begin / 1e3, end / 1e3))

    def _task_end(self, event: Event) -> None:
        run = self._run_of(event.get("Stage ID"))
        if run is None:
            self.other_task_seconds += (event.get("Task Metrics") or {}).get("Executor Run Time", 0) / 1e3
            return
        work = run.stages.setdefault(int(event["Stage ID"]), StageWork())
        work.add(event)
        for update in (event.get("Task Info") or {}).get("Accumulables", ()):
            if update.get("Metadata") == _SQL_METRIC and "Update" in update:
                work.accumulators.add(int(update["ID"]))
                _add(run.values, int(update["ID"]), update["Update"])

    def _run_of(self, stage: Any) -> QueryRun | None:
        return self._running.get(self._query_of.get(stage, -1))


def _add(values: dict[int, float], accumulator: int, update: Any) -> None:
    try:
        amount = float(update)
    except (TypeError, ValueError):
        return
    if amount > 0:  # sizes begin at -1
        values[accumulator] = values.get(accumulator, 0.0) + amount


_HANDLERS: Mapping[str, Any] = {
    "SparkListenerLogStart": Application._log_start,
    "SparkListenerApplicationStart": Application._application_start,
    "SparkListenerSQLExecutionStart": Application._execution_start,
    "SparkListenerSQLAdaptiveExecutionUpdate": Application._plan_update,
    "SparkListenerDriverAccumUpdates": Application._driver_updates,
    "SparkListenerJobStart": Application._job_start,
    "SparkListenerJobEnd": Application._job_end,
    "SparkListenerStageCompleted": Application._stage_end,
    "SparkListenerTaskEnd": Application._task_end,
}
