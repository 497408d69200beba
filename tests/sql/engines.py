"""Runs the queries of a SQL test file on Spark and in the engine, and says where the answers differ.

A query goes through Spark, through ``kquery_plan`` as one task in the driver and as many tasks in Spark's Python workers,
and through an ``ExecutionContext``. All of them read the same files.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TypeAlias

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import ExecutionError, KQueryError, Unsupported
from kquery_spark.spark_bridge.frames.crossing_types import comparable_table
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS, error_class
from kquery_spark.types.spark_json import arrow_schema
from tests.conftest import SPARK_BEFORE_4_3, settings, uncompiled
from tests.sql.compare import is_ordered, row_difference, schema_difference
from tests.sql.sql_file import Query, SqlFile, Variant, View

ONE_TASK, MANY_TASKS = "kquery_plan as one task", "kquery_plan as many tasks"
#: Settings with which the engine plans a query, by the name that messages give its run.
ENGINE_RUNS = {
    ONE_TASK: {"spark.kquery.driverBytes": "8m"},
    MANY_TASKS: {
        "spark.kquery.smallBytes": "0",
        "spark.kquery.splitBytes": "1",
        "spark.kquery.broadcastBytes": "0",
        "spark.kquery.shufflePartitions": "3",
    },
}
#: Spark's own run takes as few jobs and tasks as it can.
SPARK_SETTINGS = {
    # Spark 4's defaults, not 3.5's
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.kquery.driverBytes": "0",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.shuffle.partitions": "1",
}
ERRORS = (*SPARK_ERRORS, KQueryError)
#: What the engine says of calls that stay with an older release, or that an older pyarrow has no kernels for.
STAYS_WITH_SPARK = (", unlike ", "needs pyarrow 21 or later")
if pyspark.__version__ == "3.5.1":  # its base64 is a class of its own
    STAYS_WITH_SPARK += ("the expression Base64 is not supported",)
#: Held while a query is planned, as its settings are those of the session.
_planning = Lock()


@contextmanager
def open_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session of its own, which interprets Spark's expressions."""
    session = spark.newSession()
    with uncompiled(session), settings(session, SPARK_SETTINGS):
        yield session


@dataclass(frozen=True)
class Failure:
    """An error that running a query raised."""

    error: Exception

    @property
    def error_class(self) -> str:
        """Spark's name for the error (``DIVIDE_BY_ZERO``), or the error's text where it has none."""
        return error_class(self.error) or str(self)

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}"


Outcome: TypeAlias = pa.Table | Failure


@dataclass
class TableFiles:
    """Files of the views of all SQL test files: each view is written once, however many files declare it."""

    directory: Path
    paths: dict[tuple[object, ...], str] = field(default_factory=dict)

    def write(self, spark: SparkSession, key: tuple[object, ...], view: View, format_: str) -> str:
        """The directory with the rows of the view's query."""
        path = self.paths.get(key)
        if path is None:
            path = str(self.directory / f"{len(self.paths)}-{view.name}")
            rows = spark.sql(view.query)
            rows = rows.coalesce(1) if view.files == 1 else rows.repartition(view.files)
            rows.write.format(format_).partitionBy(*view.partitioned_by).save(path)
            self.paths[key] = path
        return path


@dataclass
class Verdict:
    """What came of a query: a sentence for each engine that does not answer as the file says.

    declined: why the query stays with an older release of Spark, which answers it otherwise than the engine, or with Spark
    as an older pyarrow lacks what it takes.
    """

    problems: list[str] = field(default_factory=list)
    declined: str | None = None

    def add(self, problem: str | None) -> None:
        """Add a sentence, if there is one."""
        if problem is not None:
            self.problems.append(problem)


@dataclass(frozen=True)
class Engines:
    """Spark and the engine with the views of one file, in one variant of it."""

    spark: SparkSession
    file: SqlFile
    context: kq.ExecutionContext

    def verdict(self, query: Query, runs: Sequence[str]) -> dict[str, Verdict]:
        """Run the query on Spark and in these runs of the engine, and compare; a verdict for each run.

        The verdict of the run as one task includes that of Spark and of the ``ExecutionContext``.
        """
        try:
            frame = self.spark.sql(query.sql)
            expected, schema = _outcome(lambda: comparable_table(frame)), frame.schema
        except ERRORS as error:  # Spark does not understand the query, and so it is not planned
            frame, expected, schema = None, Failure(error), None
        if query.error is None and isinstance(expected, Failure):
            return {run: Verdict([f"Spark raises {expected}"]) for run in runs}
        verdicts = {run: Verdict() for run in runs}
        if frame is not None:
            for run, verdict in verdicts.items():
                verdict.add(self._kquery_problem(query, frame, expected, run, verdict))
        if ONE_TASK not in verdicts:
            return verdicts
        verdict = verdicts[ONE_TASK]
        if query.error is not None:
            verdict.add(_error_problem("Spark", query.error, expected))
        if not SPARK_BEFORE_4_3:  # its SQL is that of 4.3
            verdict.add(self._context_problem(query, expected, schema))
        return verdicts

    def _kquery_problem(
        self, query: Query, frame: DataFrame, expected: Outcome, name: str, verdict: Verdict
    ) -> str | None:
        try:
            with _planning, settings(self.spark, ENGINE_RUNS[name]):
                fast = _accelerated(query, frame)
        except Unsupported as declined:
            if not SPARK_BEFORE_4_3 or not any(words in declined.reason for words in STAYS_WITH_SPARK):
                return f"kquery_plan declines: {declined}"
            verdict.declined = declined.reason
            fast = kq.kquery_plan(frame, when="always")
        if query.error is not None:
            return _error_problem(name, query.error, _outcome(lambda: comparable_table(fast)))
        if query.fallback is not None:
            reasons = _reasons_for_spark(frame)
            if not any(query.fallback in reason for reason in reasons):
                return f"{name}: no reason for Spark says {query.fallback!r}: {reasons}"
        if fast.schema != frame.schema:
            return f"{name}: the schema is {fast.schema}, Spark's is {frame.schema}"
        return _difference(name, query, expected, _outcome(lambda: comparable_table(fast)))

    def _context_problem(self, query: Query, expected: Outcome, schema: StructType | None) -> str | None:
        name = "ExecutionContext"
        actual = _outcome(lambda: self.context.sql(query.sql).to_arrow())
        if query.context_declines is not None:
            return _not_declined(query.context_declines, actual)
        if query.error is not None:
            return _error_problem(name, query.error, actual)
        problem = _difference(name, query, expected, actual)
        if problem is None and schema is not None:
            different = schema_difference(schema, self.context.sql(query.sql).schema)
            problem = different and f"{name}: {different}"
        return problem


def is_in_sample(query: Query) -> bool:
    """True for one query in four: those that ``make check`` also runs as many tasks, which takes longest.

    A hash of the SQL chooses them, so that the sample stays the same if other lines of the file change.
    """
    return zlib.crc32(query.sql.encode()) % 4 == 0


def _outcome(run: Callable[[], pa.Table]) -> Outcome:
    try:
        return run()
    except ERRORS as error:
        return Failure(error)


def _accelerated(query: Query, frame: DataFrame) -> DataFrame:
    """The query in the engine, as a whole unless the file says otherwise."""
    if query.fallback is not None:
        return kq.kquery_plan(frame, when="always")
    try:
        return kq.kquery_plan(frame, when="always", fallback="error")
    except Unsupported as declined:
        # folding a constant raises: the error equals that of Spark, whoever runs the query
        if query.error is not None and "Spark cannot plan this query itself" in declined.reason:
            return frame
        raise


def _reasons_for_spark(frame: DataFrame) -> list[str]:
    """Why a part of the query falls back to Spark: when it is planned, or when the engine sees the data."""
    planned = [reason for _, reason in kq.explain(frame).reasons]
    if planned:
        return planned
    fast = kq.kquery_plan(frame, when="always", fallback="error")
    outcome = _outcome(lambda: comparable_table(fast))
    return [str(outcome)] if isinstance(outcome, Failure) else []


def _difference(engine: str, query: Query, expected: Outcome, actual: Outcome) -> str | None:
    if isinstance(actual, Failure):
        return f"{engine} raises {actual}"
    if isinstance(expected, Failure):
        return f"{engine} gives {actual.num_rows} rows"
    names = actual.column_names
    if names != expected.column_names:
        return f"{engine}: the columns are {names}, Spark's are {expected.column_names}"
    found = row_difference(expected, actual, is_ordered(query.sql), query.tolerance)
    return found and f"{engine}: {found}"


def _error_problem(engine: str, expected: str, actual: Outcome) -> str | None:
    if not isinstance(actual, Failure):
        return f"{engine} gives {actual.num_rows} rows instead of {expected}"
    return None if actual.error_class == expected else f"{engine} raises {actual} instead of {expected}"


def _not_declined(words: str, actual: Outcome) -> str | None:
    if not isinstance(actual, Failure):
        return "ExecutionContext runs the query: remove context_declines"
    if isinstance(actual.error, ExecutionError) or words not in str(actual.error):
        return f"ExecutionContext does not decline with {words!r}: {actual}"
    return None


@contextmanager
def open_engines(
    spark: SparkSession, file: SqlFile, variant: Variant, tables: TableFiles
) -> Iterator[Engines]:
    """The engines with the settings and views of a file, which are gone afterwards."""
    config = dict(variant.config)
    with settings(spark, config), ExitStack() as views:
        context = kq.ExecutionContext(
            config=EngineConfig(parallelism=2).with_settings(config),
            time_zone=str(spark.conf.get("spark.sql.session.timeZone")),
            ansi=spark.conf.get("spark.sql.ansi.enabled") == "true",
            case_sensitive=spark.conf.get("spark.sql.caseSensitive") == "true",
        )
        for i, view in enumerate(file.views):
            declared = tuple((v.name, v.query, v.files, v.partitioned_by) for v in file.views[: i + 1])
            path = tables.write(spark, (variant, declared), view, variant.format)
            reader = spark.read.format(variant.format)
            if not view.partitioned_by:  # else the directory names say the types of the columns
                reader = reader.schema(spark.sql(view.query).schema)
            frame = reader.load(path)
            frame.createOrReplaceTempView(view.name)
            views.callback(spark.catalog.dropTempView, view.name)
            _register(context, view.name, variant.format, path, frame.schema)
        yield Engines(spark, file, context)


def _register(context: kq.ExecutionContext, name: str, format_: str, path: str, schema: StructType) -> None:
    """The files of a view as a table of the context."""
    match format_:
        case "parquet":
            context.register_parquet(name, path)
        case "orc":
            context.register_orc(name, path)
        case "json":
            context.register_json(name, path, arrow_schema(schema.jsonValue(), context.facts.time_zone))
        case "csv":
            types = arrow_schema(schema.jsonValue(), context.facts.time_zone)
            context.register_csv(name, path, types, header=False)
