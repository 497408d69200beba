"""Spark and kquery_spark in one session with equal settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

import kquery_spark as kq
from benchmarks.compare import rows_of
from benchmarks.engines.base import Run, Settings
from benchmarks.suites.base import Query, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def register(spark: SparkSession, tables: Sequence[Table]) -> None:
    """Every table as a temporary view of its name; CSV files have a header and the types of their DDL."""
    for table in tables:
        reader = spark.read.format(table.format)
        if table.ddl is not None:
            reader = reader.schema(table.ddl)
        if table.format == "csv":
            reader = reader.option("header", True)
        reader.load(str(table.path)).createOrReplaceTempView(table.name)


class _InSession:
    """A query from its text to Arrow in this process, built anew for every run.

    A second action on the same DataFrame would find the shuffle files of the first and look several times faster.
    """

    name = ""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.spark = spark
        self.settings = settings
        self._stages = StageCounter(spark)

    def load(self, tables: Sequence[Table]) -> None:
        """Make the tables temporary views."""
        register(self.spark, tables)

    def run(self, query: Query) -> Run:
        """Parse, plan and run the query; shuffled bytes are read off Spark's status store afterwards."""
        with session_settings(self.spark, query.settings):
            first = self._stages.next_stage()
            start = time.perf_counter()
            frame = self.spark.sql(query.sql)
            parsed = time.perf_counter()
            planned = self._plan(frame)
            ready = time.perf_counter()
            table = rows_of(planned)
            seconds = time.perf_counter() - start
            return Run(table, seconds, ready - parsed, self._stages.shuffled_since(first))

    def _plan(self, frame: DataFrame) -> DataFrame:
        raise NotImplementedError

    def close(self) -> None:
        """The session is the harness's to stop."""


class SparkEngine(_InSession):
    """Plain Spark SQL."""

    name = "spark"

    def _plan(self, frame: DataFrame) -> DataFrame:
        return frame


class KqueryEngine(_InSession):
    """The same session, through ``kquery_plan``."""

    name = "kquery"

    def _plan(self, frame: DataFrame) -> DataFrame:
        plan: Callable[..., DataFrame] = kq.kquery_plan
        return frame.transform(plan, when=self.settings.when)

    def decision(self, query: Query) -> dict[str, Any]:
        """What becomes of the query: whether ``auto`` picks the engine, coverage, what falls back to Spark, the verdict."""
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
def session_settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Settings of the session for a while, unset afterwards."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


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
