"""Assembles the queries of one application from the events of its log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kquery_spark.qualify.event_files import Event, EventLog, EventReader
from kquery_spark.qualify.fields import (
    MalformedEvent,
    amount,
    child,
    items,
    printable,
    records,
    required_number,
    string,
    whole_number,
)
from kquery_spark.qualify.plan import PhysicalNode, read_plan
from kquery_spark.runtime.spark.operator_tree import ENGINE_NODE

_EXECUTION_ID = "spark.sql.execution.id"
_MAX_VERSION_CHARACTERS = 40
_MAX_NAME_CHARACTERS = 200
_MAX_DESCRIPTION_CHARACTERS = 10_000
_SQL_METRIC = "sql"  # the metadata of accumulators that are metrics of plan nodes


@dataclass
class StageWork:
    """Sums over the tasks of a stage. accumulators: ids of the plan nodes' metrics that the tasks updated."""

    tasks: int = 0
    run_seconds: float = 0.0
    cpu_seconds: float = 0.0
    bytes_read: int = 0
    shuffle_bytes: int = 0
    accumulators: set[int] = field(default_factory=set)

    def add(self, event: Event, values: dict[int, float]) -> None:
        """Add a finished task, successful or not, and add its metric updates to ``values``."""
        metrics = child(event, "Task Metrics")
        run, cpu = amount(metrics, "Executor Run Time"), amount(metrics, "Executor CPU Time")
        read = amount(child(metrics, "Input Metrics"), "Bytes Read")
        written = amount(child(metrics, "Shuffle Write Metrics"), "Shuffle Bytes Written")
        updates = [
            (required_number(update, "ID"), update.get("Update"))
            for update in records(child(event, "Task Info"), "Accumulables")
            if update.get("Metadata") == _SQL_METRIC and "Update" in update
        ]
        # A malformed event must not change any sum, so all fields are read before the first one is added.
        self.tasks += 1
        self.run_seconds += run / 1e3
        self.cpu_seconds += cpu / 1e9
        self.bytes_read += read
        self.shuffle_bytes += written
        for accumulator, update in updates:
            self.accumulators.add(accumulator)
            _add(values, accumulator, update)


@dataclass
class QueryRun:
    """One execution of a query. ``values``: metric values by accumulator id. ``seconds`` is None while the query runs."""

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
        """Seconds during which at least one stage ran: the length of the union of the stages' time spans."""
        covered, last = 0.0, float("-inf")
        for begin, end in sorted(self.spans):
            covered += max(0.0, end - max(begin, last))
            last = max(last, end)
        return covered

    def total(self, name: str) -> float:
        """Return the sum of a field of ``StageWork`` over all stages."""
        return sum(float(getattr(stage, name)) for stage in self.stages.values())


class Application:
    """Reads a log once, as a stream, and yields each query when it ends.

    Only the queries that run at the current point of the log are in memory, with sums over their tasks. After the last
    query, ``truncated`` is True if the log was cut off, ``other_task_seconds`` is the time of tasks outside of queries,
    ``engine_reports`` is the number of executions in which the engine showed the operators of a query that it ran,
    ``malformed`` and ``too_long`` are the numbers of skipped events, and ``first_problem`` is a clause that describes the
    first malformed event.
    """

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.name = ""
        self.id = ""
        self.spark_version = ""
        self.truncated = False
        self.malformed = 0
        self.too_long = 0
        self.first_problem = ""
        self.other_task_seconds = 0.0
        self.engine_reports = 0
        self._running: dict[int, QueryRun] = {}
        self._query_by_stage: dict[int, int] = {}
        self._stages_by_job: dict[int, list[int]] = {}

    def queries(self) -> Iterator[QueryRun]:
        """Yield the queries in the order in which they ended, then those that never ended."""
        reader = EventReader(self.log)
        for event in reader:
            try:
                ended = self._ended_by(event)
            except MalformedEvent as error:
                self.malformed += 1
                name = printable(event["Event"][:_MAX_NAME_CHARACTERS])
                self.first_problem = self.first_problem or f"{name}: {error}"
                continue
            if ended is not None:
                yield ended
        self.truncated = reader.truncated
        self.malformed += reader.malformed
        self.too_long = reader.too_long
        yield from self._running.values()
        self._running.clear()

    def _ended_by(self, event: Event) -> QueryRun | None:
        """Handle an event; returns the query that it ends, if any."""
        name = event["Event"].rpartition(".")[2]
        if name == "SparkListenerSQLExecutionEnd":
            return self._execution_end(event)
        if handler := _HANDLERS.get(name):
            handler(self, event)
        return None

    def _log_start(self, event: Event) -> None:
        self.spark_version = string(event, "Spark Version", _MAX_VERSION_CHARACTERS)

    def _application_start(self, event: Event) -> None:
        self.name, self.id = (string(event, name, _MAX_NAME_CHARACTERS) for name in ("App Name", "App ID"))

    def _execution_start(self, event: Event) -> None:
        number, start = required_number(event, "executionId"), required_number(event, "time")
        if number in self._running:
            raise MalformedEvent(f"query {number} starts while it runs")
        plan = read_plan(child(event, "sparkPlanInfo"))
        if plan.name.startswith(ENGINE_NODE):
            # The engine shows the operators of another execution, or of a query in the driver.
            self.engine_reports += 1
            return
        description = string(event, "description", _MAX_DESCRIPTION_CHARACTERS)
        self._running[number] = QueryRun(number, description, start / 1e3, plan)

    def _execution_end(self, event: Event) -> QueryRun | None:
        number, end = required_number(event, "executionId"), required_number(event, "time")
        error = string(event, "errorMessage", _MAX_DESCRIPTION_CHARACTERS)
        ended = self._running.pop(number, None)
        if ended is not None:
            ended.end, ended.error = end / 1e3, error
        return ended

    def _plan_update(self, event: Event) -> None:
        run = self._running.get(required_number(event, "executionId"))
        if run is not None and event.get("sparkPlanInfo"):
            run.plan = read_plan(child(event, "sparkPlanInfo"))

    def _driver_updates(self, event: Event) -> None:
        run = self._running.get(required_number(event, "executionId"))
        updates = [_driver_update(update) for update in items(event, "accumUpdates")]
        if run is not None:
            for accumulator, update in updates:
                _add(run.values, accumulator, update)

    def _job_start(self, event: Event) -> None:
        number = whole_number(child(event, "Properties"), _EXECUTION_ID)
        if number is None or number not in self._running:
            return
        job = required_number(event, "Job ID")
        stages = [required_number({"Stage IDs": stage}, "Stage IDs") for stage in items(event, "Stage IDs")]
        self._stages_by_job[job] = stages
        self._query_by_stage.update(dict.fromkeys(stages, number))

    def _job_end(self, event: Event) -> None:
        for stage in self._stages_by_job.pop(required_number(event, "Job ID"), ()):
            self._query_by_stage.pop(stage, None)

    def _stage_end(self, event: Event) -> None:
        info = child(event, "Stage Info")
        run = self._run_of(whole_number(info, "Stage ID"))
        begin, end = whole_number(info, "Submission Time"), whole_number(info, "Completion Time")
        if run is not None and begin is not None and end is not None:
            run.spans.append((begin / 1e3, end / 1e3))

    def _task_end(self, event: Event) -> None:
        stage = whole_number(event, "Stage ID")
        run = self._run_of(stage)
        if run is None or stage is None:
            self.other_task_seconds += amount(child(event, "Task Metrics"), "Executor Run Time") / 1e3
        else:
            run.stages.setdefault(stage, StageWork()).add(event, run.values)

    def _run_of(self, stage: int | None) -> QueryRun | None:
        number = None if stage is None else self._query_by_stage.get(stage)
        return None if number is None else self._running.get(number)


def _driver_update(update: Any) -> tuple[int, Any]:
    """Decode ``[accumulator id, update]``, the form in which Spark writes an update by the driver."""
    if not isinstance(update, list) or len(update) < 2:
        raise MalformedEvent("accumUpdates has an element that is not a pair")
    return required_number({"accumUpdates": update[0]}, "accumUpdates"), update[1]


def _add(values: dict[int, float], accumulator: int, update: Any) -> None:
    """Add a numeric update to an accumulator; updates that are not numbers belong to no metric and are ignored."""
    try:
        added = whole_number({"Update": update}, "Update")
    except MalformedEvent:
        return
    if added is not None and added > 0:  # Spark initializes size metrics to -1
        values[accumulator] = values.get(accumulator, 0.0) + added


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
