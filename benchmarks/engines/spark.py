"""Spark and kquery_spark in one session with equal settings."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

import kquery_spark as kq
from benchmarks.compare import rows_of
from benchmarks.engines.base import Run, Settings
from benchmarks.pipelines.result import as_table
from benchmarks.suites.base import Query, Step, Table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from kquery_spark.accelerate.observers import QueryEvent

_MAX_REMOVALS, _SECONDS_AFTER_REMOVAL = 50, 0.1


def register(spark: SparkSession, tables: Sequence[Table]) -> None:
    """Every table as a temporary view of its name; CSV files have a header and the types of their DDL."""
    for table in tables:
        reader = spark.read.format(table.format)
        if table.ddl is not None:
            reader = reader.schema(table.ddl)
        if table.format == "csv":
            reader = reader.option("header", True)
        reader.load(str(table.path)).createOrReplaceTempView(table.name)


def remove_outputs(tables: Sequence[Table]) -> None:
    """Remove the files of steps. Call it after Spark has stopped.

    The tasks of an interrupted write may create the directory again. So it is removed until it stays away for a moment, for
    about five seconds at most.
    """
    if not tables:
        return
    directory = _output_directory(tables)
    for _ in range(_MAX_REMOVALS):
        shutil.rmtree(directory, ignore_errors=True)
        time.sleep(_SECONDS_AFTER_REMOVAL)
        if not directory.exists():
            return


def _output_directory(tables: Sequence[Table]) -> Path:
    return tables[0].path.parent / "_output"


class _InSession:
    """Runs a query from its SQL to an Arrow table in this process, or a step to the end of its action.

    Every run builds its DataFrames anew: a second action on the same DataFrame would find the shuffle files of the first and
    look several times faster. ``tables``: the files that steps read; steps write to a directory beside the first table.
    """

    name = ""

    def __init__(self, spark: SparkSession, settings: Settings, tables: Sequence[Table] = ()) -> None:
        self.spark = spark
        self.settings = settings
        self._tables = tables
        self._stages = StageCounter(spark)

    def load(self, tables: Sequence[Table]) -> None:
        """Make the tables temporary views."""
        register(self.spark, tables)

    def run(self, query: Query) -> Run:
        """Parse, plan and run the query; shuffled bytes are read off Spark's status store afterwards."""
        with session_settings(self.spark, query.settings):
            first = self._stages.next_stage()
            if query.step is not None:
                return self._run_step(query.step, first)
            start = time.perf_counter()
            frame = self.spark.sql(query.sql)
            parsed = time.perf_counter()
            planned = self._plan(frame)
            ready = time.perf_counter()
            table = rows_of(planned)
            seconds = time.perf_counter() - start
            return Run(table, seconds, ready - parsed, self._stages.shuffled_since(first))

    def _run_step(self, step: Step, first_stage: int) -> Run:
        """Run a step; its time ends with its action, before the files that it wrote are read back."""
        paths = {table.name: str(table.path) for table in self._tables}
        out = _output_directory(self._tables) / self.name
        shutil.rmtree(out, ignore_errors=True)
        try:
            start = time.perf_counter()
            with self._actions():
                result = step.run(self.spark, paths, str(out))
            seconds = time.perf_counter() - start
            shuffled = self._stages.shuffled_since(first_stage)
            table = as_table(result, out, step.ordered)
        finally:
            shutil.rmtree(out, ignore_errors=True)
        return Run(table, seconds, self._planning_seconds(), shuffled)

    def _plan(self, frame: DataFrame) -> DataFrame:
        raise NotImplementedError

    def _actions(self) -> AbstractContextManager[None]:
        """The context in which the actions of a step run on this engine."""
        return nullcontext()

    def _planning_seconds(self) -> float | None:
        """The planning time of the engine in the latest step; None for Spark."""
        return None

    def close(self) -> None:
        """Do nothing: the harness stops the session."""


class SparkEngine(_InSession):
    """Plain Spark SQL."""

    name = "spark"

    def _plan(self, frame: DataFrame) -> DataFrame:
        return frame


class KqueryEngine(_InSession):
    """The same session, through ``kquery_plan``; for the actions of steps, through ``kq.enable``."""

    name = "kquery"

    def __init__(self, spark: SparkSession, settings: Settings, tables: Sequence[Table] = ()) -> None:
        super().__init__(spark, settings, tables)
        self._events: list[QueryEvent] = []

    def _plan(self, frame: DataFrame) -> DataFrame:
        plan: Callable[..., DataFrame] = kq.kquery_plan
        return frame.transform(plan, when=self.settings.when)

    def decision(self, query: Query) -> dict[str, Any]:
        """Return the decision for the query: whether the engine runs it, coverage, what falls back to Spark and why.

        For a step: the same for its actions in the latest run, and where each of them ran.
        """
        if query.step is not None:
            return _step_decision(self._events)
        with session_settings(self.spark, query.settings):
            explained = kq.explain(self.spark.sql(query.sql))
        return {
            "accelerated": bool(explained.accelerated)
            if self.settings.when == "auto"
            else explained.coverage > 0,
            "coverage": round(float(explained.coverage), 4),
            "reasons": [f"{node}: {sentence}" for node, sentence in explained.reasons],
            "decisions": [decision.sentence for decision in explained.decisions],
        }

    @contextmanager
    def _actions(self) -> Iterator[None]:
        # typed as a plain callable: the command line has checked ``when``, whose type here is str
        enable: Callable[..., None] = kq.enable
        self._events = []
        stop_observing = kq.on_query(self._events.append)
        enable(self.spark, when=self.settings.when)
        try:
            yield
        finally:
            kq.disable(self.spark)
            stop_observing()

    def _planning_seconds(self) -> float | None:
        return sum(event.seconds for event in self._events if event.kind == "planned")


IN_SESSION_ENGINES: dict[str, type[_InSession]] = {
    engine.name: engine for engine in (SparkEngine, KqueryEngine)
}


def _step_decision(events: Sequence[QueryEvent]) -> dict[str, Any]:
    """Return the facts of ``KqueryEngine.decision`` and the places from the events of a step's actions."""
    planned = [event for event in events if event.kind == "planned"]
    failures = [event.failure for event in events if event.failure]
    sentences = [sentence for event in planned for sentence in event.sentences]
    if not planned:
        sentences = ["Spark runs the step: none of its actions is one that kq.enable accelerates."]
    places = _places(events)
    shares = [
        event.coverage if place != "spark" else 0.0 for event, place in zip(planned, places, strict=True)
    ]
    return {
        "accelerated": any(place != "spark" for place in places),
        "coverage": round(sum(shares) / len(shares), 4) if shares else 0.0,
        "places": places,
        "reasons": failures,
        "decisions": sentences,
    }


def _places(events: Sequence[QueryEvent]) -> list[str]:
    """Return where each planned action ran: the place in the event of its end, or the planned place without such an event."""
    places: list[str] = []
    for event in events:
        if event.kind == "planned":
            places.append(event.place)
        elif places:
            places[-1] = event.place
    return places


@contextmanager
def session_settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Change settings of the session, and restore them afterward."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, earlier in before.items():
            if earlier is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, earlier)


class StageCounter:
    """Bytes written to shuffles by the stages of a run, from the status store every Spark driver keeps."""

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark._jsc.sc()

    def next_stage(self) -> int:
        """The number the next stage will get."""
        return int(self._context.dagScheduler().nextStageId())

    def shuffled_since(self, first: int) -> int:
        """Shuffle bytes written by the stages from ``first`` on."""
        # stages report through a queue, which may be behind the result
        self._context.listenerBus().waitUntilEmpty()
        store = self._context.statusStore()
        return sum(_written(store, number) for number in range(first, self.next_stage()))


def _written(store: Any, number: int) -> int:
    try:
        return int(store.lastStageAttempt(number).shuffleWriteBytes())
    except Py4JJavaError:
        return 0  # a number given to a stage that never ran
