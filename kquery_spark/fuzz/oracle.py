"""Runs one case on Spark and in the engine and says how they differ."""

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
    "left to spark",
    "not compared",
    "rows",
    "schema",
    "only engine fails",
    "only spark fails",
    "error class",
]
MISMATCHES = ("rows", "schema", "only engine fails", "only spark fails", "error class")
Answer: TypeAlias = pa.Table | Exception
# Failures of Spark's own, by where they happen.
_FAILS_IN = {
    "ParquetDictionary.decodeTo": "Spark's lambdas look up NULLs in dictionaries that hold no value",
    "OrcFilters$.castLiteralValue": "Spark compares a column of ORC files with a subquery that is NULL",
}


@dataclass(frozen=True)
class Outcome:
    """What came of a case. ``signature``: what stays the same while it shrinks; ``local``: without Spark."""

    kind: Kind
    detail: str = ""
    signature: str = ""
    local: bool = False

    @property
    def mismatch(self) -> bool:
        """Whether the engine did not do what Spark did."""
        return self.kind in MISMATCHES


class Oracle:
    """Runs cases on a session, and in this process unless ``local`` is False."""

    def __init__(self, spark: SparkSession, store: TableStore, local: bool = True) -> None:
        self._spark = spark
        self._store = store
        self._local = local

    def run(self, case: Case) -> Outcome:
        """The outcome of one case; plans are built anew for each side."""
        self._store.register(case.tables)
        with applied(self._spark, case.settings):
            expected = self._expected(case)
            if isinstance(expected, Outcome):
                return expected
            outcome = self._on_spark(case, expected)
            if outcome.mismatch or not self._local:
                return outcome
            return self._in_process(case, expected, outcome)

    def _expected(self, case: Case) -> Outcome | Answer:
        try:
            frame = self._spark.sql(case.query.sql())
        except (AnalysisException, ParseException) as error:
            return Outcome("invalid", sentence(error))
        answer = spark_answer_of(frame)
        # PySpark cannot hand over NULL structs of fields that never are
        if isinstance(answer, pa.ArrowInvalid):
            return Outcome("invalid", sentence(answer))
        for place, failing in _FAILS_IN.items():
            if isinstance(answer, Exception) and place in str(answer):
                return Outcome("invalid", failing)
        return answer

    def _on_spark(self, case: Case, expected: Answer) -> Outcome:
        again = self._spark.sql(case.query.sql())
        try:
            fast = again.transform(kquery_plan, when=case.when)
        except Exception as error:
            if isinstance(expected, Exception):
                return Outcome("both fail", sentence(expected))
            return failure("only engine fails", error)
        if fast is again:
            return Outcome("left to spark")
        actual = answer_of(fast)
        if again.schema != fast.schema and not isinstance(actual, Exception):
            return Outcome("schema", f"{again.schema.simpleString()} against {fast.schema.simpleString()}")
        return _verdict(case, expected, actual)

    def _in_process(self, case: Case, expected: Answer, on_spark: Outcome) -> Outcome:
        """The same query by ``ExecutionContext`` without Spark; ``on_spark`` when that declines it."""
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


def _verdict(case: Case, expected: Answer, actual: Answer) -> Outcome:
    if isinstance(expected, Exception) and isinstance(actual, Exception):
        return Outcome("both fail", sentence(expected))
    if isinstance(expected, Exception):
        return failure("only spark fails", expected)
    if isinstance(actual, Exception):
        return engine_failure(actual)
    ordered = isinstance(case.query, Select) and bool(case.query.order)
    differences = compare_tables(expected, actual, ordered)
    if differences:
        return Outcome("rows", "; ".join(str(difference) for difference in differences))
    return Outcome("same")


def answer_of(frame: DataFrame) -> Answer:
    """The rows, or the error there is instead; the engine must not leave a failure to Spark."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FallbackWarning)
            return arrow_table(frame)
    except Exception as error:
        return error


def spark_answer_of(frame: DataFrame) -> Answer:
    """Spark's own answer. An error that is none of Spark's classes may be one of the machine: it has to come twice."""
    answer = answer_of(frame)
    return answer_of(frame) if isinstance(answer, Exception) and error_class(answer) is None else answer


def in_schema_of(expected: pa.Table, actual: pa.Table) -> pa.Table:
    """Columns of the engine without Spark as Spark declares them, where they are of Spark's types.

    PySpark says UTC whatever the session's time zone is, and Spark knows of more constants that they are never NULL.
    """
    if expected.column_names != actual.column_names:
        return actual
    for position, (theirs, ours) in enumerate(zip(expected.schema, actual.schema, strict=True)):
        column = actual.column(position)
        same = t.spark_name(theirs.type) == t.spark_name(ours.type)
        if same and (theirs.nullable or not column.null_count):
            actual = actual.set_column(position, theirs, column.cast(theirs.type))
    return actual


def failure(kind: Kind, error: Exception) -> Outcome:
    """The outcome of one side's error."""
    text = str(error)
    # a worker's own words are the last line of its traceback
    named = re.findall(
        r"^([A-Za-z_][\w.]*(?:Error|Exception|Unsupported|Invalid)\w*): ([^\n]*)", text, re.MULTILINE
    )
    what = f"{named[-1][0]}: {named[-1][1]}" if named else sentence(error)
    return Outcome(kind, what[:600], error_class(error) or what.partition(":")[0])


def engine_failure(error: Exception) -> Outcome:
    """The outcome of the engine's error. What it declines only when it sees the values, Spark runs again: no failure."""
    outcome = failure("only engine fails", error)
    of_task = task_error_of(error)
    names = [Unsupported.__name__, *(cls.__name__ for cls in Unsupported.__subclasses__())]
    declined = of_task.name in names if of_task else any(f" {name}: " in str(error) for name in names)
    if declined or isinstance(error, Unsupported):
        return Outcome("left to spark", outcome.detail)
    return outcome


def sentence(error: Exception) -> str:
    """An error on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:400]
