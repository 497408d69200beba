"""Runs one case in Spark and in the engine, and describes how the results differ."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from kquery_spark.accelerate.api import kquery_plan
from kquery_spark.errors import FallbackWarning, PlanError, Unsupported
from kquery_spark.fuzz.generate import Case
from kquery_spark.fuzz.queries import Select
from kquery_spark.fuzz.settings import TIME_ZONE, applied, engine_config, is_ansi
from kquery_spark.fuzz.store import TableStore
from kquery_spark.spark_bridge.frames.pyspark_names import arrow_table
from kquery_spark.spark_bridge.session.failures import error_class, task_error_of
from kquery_spark.types import names as t
from kquery_spark.verify import compare_tables

Kind = Literal[
    "same",
    "both fail",
    "invalid",
    "fallback",
    "not compared",
    "rows",
    "schema",
    "only engine fails",
    "only spark fails",
    "error class",
]
MISMATCHES = ("rows", "schema", "only engine fails", "only spark fails", "error class")
Answer: TypeAlias = pa.Table | Exception
# Known bugs of Spark, by the Java method in which they fail.
_FAILS_IN = {
    "ParquetDictionary.decodeTo": "Spark's lambdas look up NULLs in dictionaries that hold no value",
    "OrcFilters$.castLiteralValue": "Spark compares a column of ORC files with a subquery that is NULL",
}


@dataclass(frozen=True)
class CaseOutcome:
    """The outcome of a case. signature: must not change while the case shrinks. local: True if found without Spark."""

    kind: Kind
    detail: str = ""
    signature: str = ""
    local: bool = False

    @property
    def mismatch(self) -> bool:
        """True if the engine behaved differently from Spark."""
        return self.kind in MISMATCHES


class Oracle:
    """Runs cases in a Spark session, and also in this process without Spark unless ``local`` is False."""

    def __init__(self, spark: SparkSession, store: TableStore, local: bool = True) -> None:
        self._spark = spark
        self._store = store
        self._local = local

    def run(self, case: Case) -> CaseOutcome:
        """Return the outcome of one case. Each side builds its own plan."""
        self._store.register(case.tables)
        with applied(self._spark, case.settings):
            expected = self._expected(case)
            if isinstance(expected, CaseOutcome):
                return expected
            outcome = self._on_spark(case, expected)
            if outcome.mismatch or not self._local:
                return outcome
            return self._in_process(case, expected, outcome)

    def _expected(self, case: Case) -> CaseOutcome | Answer:
        try:
            frame = self._spark.sql(case.query.sql())
        except (AnalysisException, ParseException) as error:
            return CaseOutcome("invalid", sentence(error))
        answer = spark_answer_of(frame)
        # PySpark cannot convert NULL structs with fields that are never NULL.
        if isinstance(answer, pa.ArrowInvalid):
            return CaseOutcome("invalid", sentence(answer))
        for place, failing in _FAILS_IN.items():
            if isinstance(answer, Exception) and place in str(answer):
                return CaseOutcome("invalid", failing)
        return answer

    def _on_spark(self, case: Case, expected: Answer) -> CaseOutcome:
        frame = self._spark.sql(case.query.sql())
        try:
            fast = frame.transform(kquery_plan, when=case.when)
        except Exception as error:
            if isinstance(expected, Exception):
                return CaseOutcome("both fail", sentence(expected))
            return failure("only engine fails", error)
        if fast is frame:
            return CaseOutcome("fallback")
        actual = answer_of(fast)
        if frame.schema != fast.schema and not isinstance(actual, Exception):
            return CaseOutcome(
                "schema", f"{frame.schema.simpleString()} against {fast.schema.simpleString()}"
            )
        return _verdict(case, expected, actual)

    def _in_process(self, case: Case, expected: Answer, on_spark: CaseOutcome) -> CaseOutcome:
        """Run the same query in an ``ExecutionContext`` without Spark. Return ``on_spark`` if that declines the query."""
        zone = str(self._spark.conf.get(TIME_ZONE))
        config = engine_config(case.settings)
        context = self._store.context(case.tables, config, is_ansi(case.settings), zone)
        try:
            actual: Answer = context.sql(case.query.sql()).to_arrow()
            if isinstance(expected, pa.Table):
                actual = in_schema_of(expected, actual)
        except (Unsupported, PlanError):
            return on_spark
        except Exception as error:
            actual = error
        verdict = _verdict(case, expected, actual)
        return replace(verdict, local=True) if verdict.mismatch else on_spark


def _verdict(case: Case, expected: Answer, actual: Answer) -> CaseOutcome:
    """Compare the answers of Spark and of the engine, which can be rows or errors."""
    if isinstance(expected, Exception) and isinstance(actual, Exception):
        return CaseOutcome("both fail", sentence(expected))
    if isinstance(expected, Exception):
        return failure("only spark fails", expected)
    if isinstance(actual, Exception):
        return engine_failure(actual)
    ordered = isinstance(case.query, Select) and bool(case.query.order)
    differences = compare_tables(expected, actual, ordered)
    if differences:
        return CaseOutcome("rows", "; ".join(str(difference) for difference in differences))
    return CaseOutcome("same")


def answer_of(frame: DataFrame) -> Answer:
    """Return the rows, or the error. A fallback to Spark at run time counts as an error of the engine."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FallbackWarning)
            return arrow_table(frame)
    except Exception as error:
        return error


def spark_answer_of(frame: DataFrame) -> Answer:
    """Return Spark's answer. An error without a Spark error class can be a problem of the machine, so try it twice."""
    answer = answer_of(frame)
    return answer_of(frame) if isinstance(answer, Exception) and error_class(answer) is None else answer


def in_schema_of(expected: pa.Table, actual: pa.Table) -> pa.Table:
    """Return the result of the engine without Spark with the column declarations of Spark's result.

    Only columns of the same Spark type are converted. Two differences are expected: PySpark declares timestamps as UTC
    regardless of the session's time zone, and Spark knows that more constants are never NULL.
    """
    if expected.column_names != actual.column_names:
        return actual
    for position, (theirs, ours) in enumerate(zip(expected.schema, actual.schema, strict=True)):
        column = actual.column(position)
        same = t.spark_name(theirs.type) == t.spark_name(ours.type)
        if same and (theirs.nullable or not column.null_count):
            actual = actual.set_column(position, theirs, column.cast(theirs.type))
    return actual


def failure(kind: Kind, error: Exception) -> CaseOutcome:
    """Return the outcome for an error that only one side raised."""
    text = str(error)
    # The last line of a traceback has the error of the worker itself.
    named = re.findall(
        r"^([A-Za-z_][\w.]*(?:Error|Exception|Unsupported|Invalid)\w*): ([^\n]*)", text, re.MULTILINE
    )
    what = f"{named[-1][0]}: {named[-1][1]}" if named else sentence(error)
    return CaseOutcome(kind, what[:600], error_class(error) or what.partition(":")[0])


def engine_failure(error: Exception) -> CaseOutcome:
    """Return the outcome of an error of the engine.

    If the engine declines the query only at run time, because of the values, Spark runs it again. That is not a failure.
    """
    outcome = failure("only engine fails", error)
    of_task = task_error_of(error)
    names = [Unsupported.__name__, *(cls.__name__ for cls in Unsupported.__subclasses__())]
    declined = of_task.name in names if of_task else any(f" {name}: " in str(error) for name in names)
    if declined or isinstance(error, Unsupported):
        return CaseOutcome("fallback", outcome.detail)
    return outcome


def sentence(error: Exception) -> str:
    """Return an error as one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:400]
