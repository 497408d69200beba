"""``kq.verify``: runs a query in Spark and in the engine, and reports whether the answers are equal."""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass, replace
from html import escape

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from kquery_spark.accelerate.execution.assemble import assemble
from kquery_spark.accelerate.execution.dataframe import execution_of
from kquery_spark.accelerate.planning.pipeline import plan_frame
from kquery_spark.accelerate.planning.planned_query import PlannedQuery
from kquery_spark.errors import VerifyError
from kquery_spark.progress import progress
from kquery_spark.spark_bridge.frames.arrow_collection import was_interrupted
from kquery_spark.spark_bridge.frames.crossing_types import comparable_table
from kquery_spark.spark_bridge.relations.catalog_snapshot import unplanned_copy
from kquery_spark.spark_bridge.session.bridge import check_frame, get_bridge
from kquery_spark.spark_bridge.session.bypass import bypass
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS, error_class, is_cancelled
from kquery_spark.spark_bridge.ui.job_descriptions import draws_progress
from kquery_spark.verify.compare import Difference, compare_tables
from kquery_spark.verify.order import ambiguity_reason, ordered_columns

_MAX_FIRST_SECONDS = 30.0
"""The first runs of an application are repeated if both together take at most this time."""

_warm_contexts: weakref.WeakSet[SparkContext] = weakref.WeakSet()
_NOT_NULL = {True: "", False: " not null"}


@dataclass(frozen=True, repr=False)
class Report:
    """The report of ``verify``. ``bool(report)`` is True if the answers are equal.

    accelerated: True if the engine ran any part of the query. If not, Spark ran it once, and both times are equal.
    coverage: the share of the plan's nodes that the engine ran, 0 to 1. rows, columns: the size of the result.
    ordered_by: the columns that were compared row by row. error: the error class that both runs raised, or None.
    note: why a difference may not be a bug.
    first_runs: True if the times are those of the first verification of an application, which include the warm-up of the
    JVM and of the Python workers.
    """

    ok: bool
    accelerated: bool
    coverage: float
    rows: int
    columns: int
    spark_seconds: float
    engine_seconds: float
    differences: tuple[Difference, ...] = ()
    ordered_by: tuple[str, ...] = ()
    error: str | None = None
    note: str | None = None
    first_runs: bool = False

    def __str__(self) -> str:
        if not self.accelerated:
            return "same as Spark SQL: yes, because Spark ran all of it"
        first = "first runs, with warm-up: " if self.first_runs else ""
        seconds = f"{first}Spark {self.spark_seconds:.2f} s, engine {self.engine_seconds:.2f} s"
        times = f"coverage {self.coverage:.0%}; {seconds}"
        if self.ok and self.error is not None:
            return f"same as Spark SQL: yes (both raise {self.error}; {times})"
        if self.ok:
            order = f"; in the order of {', '.join(self.ordered_by)}" if self.ordered_by else ""
            return f"same as Spark SQL: yes ({self.rows} rows, {self.columns} columns{order}; {times})"
        lines = [f"same as Spark SQL: NO ({times})", *(f"  {d}" for d in self.differences)]
        return "\n".join([*lines, f"  {self.note}"] if self.note else lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the report as HTML for notebooks: the verdict in green or red, and the differences below it."""
        color = "#2da44e" if self.ok else "#e5534b"
        verdict, *details = str(self).split("\n")
        lines = "".join(f"<li>{escape(line.strip())}</li>" for line in details)
        head = f'<b style="color:{color}">{escape(verdict)}</b>'
        return f'<div class="kquery-report">{head}{f"<ul>{lines}</ul>" if lines else ""}</div>'

    def __bool__(self) -> bool:
        return self.ok

    def check(self) -> Report:
        """Return this report; raises VerifyError with the text of the report if the answers differ."""
        if not self.ok:
            raise VerifyError(str(self))
        return self


@dataclass(frozen=True)
class RunResult:
    """The result of one run: a table, or the error it raised, and the wall-clock seconds it took."""

    result: pa.Table | BaseException
    seconds: float

    @property
    def raised(self) -> bool:
        """Whether the run raised an error."""
        return isinstance(self.result, BaseException)


@dataclass(frozen=True)
class Comparison:
    """Both runs of a query and the report on them.

    expected, actual: the results of Spark and of the engine; the same result if Spark ran the whole query.
    schemas: the schemas of Spark's DataFrame and of the engine's.
    """

    report: Report
    expected: RunResult
    actual: RunResult
    schemas: tuple[StructType, StructType]


def verify(frame: DataFrame) -> Report:
    """Run a query once on Spark and once with every part that the engine can run, and compare the results.

    Names, types, nullability, and the multiset of rows must be equal, and columns that the query orders by must be equal row
    by row. Floating-point results may differ by a relative 1e-9. If both runs raise an error, its class must be the same;
    errors without a class and those of cancelled jobs are raised. For a DataFrame of ``kquery_plan``, the original query is
    verified.

    The first time that the engine runs in a verification of an application, both engines run the query a second time if that
    is quick, so that the times are those of warm runs. Otherwise, the report says that they are those of first runs.
    """
    return compare_with_spark(frame).report


def compare_with_spark(frame: DataFrame) -> Comparison:
    """Run ``frame`` as ``verify`` does, and return the report with both results."""
    check_frame(frame, "verify")
    execution = execution_of(frame)
    if execution is not None:
        frame = execution.original
    planned = plan_frame(frame)
    context = frame.sparkSession.sparkContext
    shown = planned.config.progress and not draws_progress(context)
    with bypass(), progress("verify", "runs", 2, enabled=shown) as bar:
        bar.step = "Spark"
        expected = _run(_frame_for_spark(frame, planned))
        bar.advance("the engine")
        if not planned.parts:
            if isinstance(expected.result, BaseException):
                raise expected.result
            size = expected.result.num_rows, expected.result.num_columns
            report = Report(True, False, 0.0, *size, expected.seconds, expected.seconds)
            return Comparison(report, expected, expected, (frame.schema, frame.schema))
        fast = assemble(planned, planned.parts)
        actual = _run(fast)
        report = _report(planned, fast, expected, actual)
        if context not in _warm_contexts:
            _warm_contexts.add(context)
            if not (expected.raised or actual.raised):
                bar.step = "warm runs"
                report = _with_warm_times(report, frame, planned)
        return Comparison(report, expected, actual, (frame.schema, fast.schema))


def _frame_for_spark(frame: DataFrame, planned: PlannedQuery) -> DataFrame:
    """Return the DataFrame that Spark runs to get the expected answer.

    A DataFrame that reads tables pins their files when it first runs, but the engine plans with the current files. So Spark
    runs a new copy of the DataFrame: it reads the current files, and does not pin those of the user's DataFrame. If the
    query has values of ``current_timestamp()`` and similar functions, both engines have to use the values of one plan.
    """
    if planned.snapshot is None or not planned.snapshot.reads_tables:
        return frame
    if planned.snapshot.has_current_values:
        with_same_values = planned.bridge.frame(planned.plan)
        if with_same_values.schema == frame.schema:  # the optimizer may change the nullability of columns
            return with_same_values
    return unplanned_copy(frame, planned.bridge)


def _with_warm_times(report: Report, frame: DataFrame, planned: PlannedQuery) -> Report:
    """Return the report with the times of second runs; if the first runs were slow, mark its times as those of first runs.

    The second runs use new DataFrames, because a DataFrame that has run reuses its shuffle files.
    """
    if report.spark_seconds + report.engine_seconds > _MAX_FIRST_SECONDS:
        return replace(report, first_runs=True)
    spark_seconds = _seconds(unplanned_copy(frame, get_bridge(frame.sparkSession)))
    engine_seconds = None if spark_seconds is None else _seconds(assemble(planned, planned.parts))
    if spark_seconds is None or engine_seconds is None:
        return replace(report, first_runs=True)
    return replace(report, spark_seconds=spark_seconds, engine_seconds=engine_seconds)


def _seconds(frame: DataFrame) -> float | None:
    """Run a query and return its time in seconds; None if it raised an error."""
    run = _run(frame)
    return None if run.raised else run.seconds


def _run(frame: DataFrame) -> RunResult:
    """Collect a DataFrame. The error of a cancelled job is raised, so that no other run starts; others are in the result."""
    started = time.perf_counter()
    result: pa.Table | BaseException
    try:
        result = comparable_table(frame)
    except SPARK_ERRORS as error:
        if was_interrupted(error):  # PySpark raises the error of the job that Ctrl-C cancelled
            raise KeyboardInterrupt from None
        if is_cancelled(error):
            raise
        result = error
    return RunResult(result, time.perf_counter() - started)


def _report(planned: PlannedQuery, fast: DataFrame, expected: RunResult, actual: RunResult) -> Report:
    left, right = expected.result, actual.result
    seconds = expected.seconds, actual.seconds
    if isinstance(left, BaseException) or isinstance(right, BaseException):
        return _error_report(planned, expected, actual)
    order = ordered_columns(planned)
    differences = _schema_differences(planned.frame, fast) or compare_tables(left, right, order)
    return Report(
        not differences,
        True,
        planned.coverage,
        left.num_rows,
        left.num_columns,
        *seconds,
        tuple(differences),
        tuple(left.schema.names[i] for i in order),
        note=ambiguity_reason(planned) if differences else None,
    )


def _error_report(planned: PlannedQuery, expected: RunResult, actual: RunResult) -> Report:
    """Return the report if at least one run raised an error; both runs should raise the same error class."""
    seconds = expected.seconds, actual.seconds
    classes = []
    for result in (expected.result, actual.result):
        name = error_class(result) if isinstance(result, BaseException) else ""
        if isinstance(result, BaseException) and name is None:
            raise result  # an error without a class is not an answer: the query or the machine is broken
        classes.append(name)
    if classes[0] == classes[1]:
        return Report(True, True, planned.coverage, 0, 0, *seconds, error=classes[0])
    outcomes = [f"raises {c}" if c else "returns a result" for c in classes]
    difference = Difference(f"Spark {outcomes[0]}, the engine {outcomes[1]}")
    return Report(False, True, planned.coverage, 0, 0, *seconds, (difference,))


def _type_text(dtype: DataType) -> str:
    """Return Spark's name of a type, with "not null" after the elements, values, and fields that cannot be NULL."""
    match dtype:
        case ArrayType():
            return f"array<{_type_text(dtype.elementType)}{_NOT_NULL[dtype.containsNull]}>"
        case MapType():
            value = f"{_type_text(dtype.valueType)}{_NOT_NULL[dtype.valueContainsNull]}"
            return f"map<{_type_text(dtype.keyType)},{value}>"
        case StructType():
            fields = [f"{f.name}:{_type_text(f.dataType)}{_NOT_NULL[f.nullable]}" for f in dtype.fields]
            return f"struct<{','.join(fields)}>"
    return dtype.simpleString()


def _schema_differences(frame: DataFrame, fast: DataFrame) -> list[Difference]:
    """Return the differences between the schemas of the two Spark DataFrames, column by column."""
    spark, engine = frame.schema, fast.schema
    if spark == engine:
        return []
    if spark.names != engine.names:
        return [Difference(f"Spark's columns are {spark.names}, the engine's {engine.names}")]
    words = {True: "nullable", False: "not nullable"}
    differences = []
    for a, b in zip(spark.fields, engine.fields, strict=True):
        if a != b:
            in_spark = f"{_type_text(a.dataType)} {words[a.nullable]}"
            in_engine = f"{_type_text(b.dataType)} {words[b.nullable]}"
            differences.append(
                Difference(f"column {a.name} is {in_spark} in Spark, {in_engine} in the engine")
            )
    return differences
