"""One query in Spark and in the engine: what came of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from kquery_spark.accelerate.execution.assemble import assemble
from kquery_spark.accelerate.planning.pipeline import plan_frame
from kquery_spark.spark_bridge.frames.pyspark_names import arrow_table
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS, error_class
from kquery_spark.verify import Report, verify

Kind = Literal[
    "same",
    "same in part",
    "fallback",
    "both fail",
    "several answers",
    "not comparable",
    "differ",
    "rejected",
    "command",
]
KINDS: tuple[Kind, ...] = (
    "same",
    "same in part",
    "fallback",
    "both fail",
    "several answers",
    "not comparable",
    "differ",
    "rejected",
    "command",
)
"""Kinds of outcomes.

same: the engine ran all of it. same in part: a part of it. both fail: with the same error class. several answers: the
results differ, and the query leaves open which is right. rejected: by Spark's parser or analyzer. command: not a query.
"""
REJECTIONS = (AnalysisException, ParseException)
_NO_ARROW = frozenset({"UNSUPPORTED_DATA_TYPE_FOR_ARROW_CONVERSION", "UNSUPPORTED_DATA_TYPE"})
_NO_ARROW_TYPES = ("interval", "variant", "void", "geometry", "geography", "time")


@dataclass(frozen=True)
class CaseOutcome:
    """What came of one statement."""

    kind: Kind
    detail: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def judge(frame: DataFrame) -> CaseOutcome:
    """Run a query on Spark and in the engine and compare.

    Results of types that PySpark cannot hand over as Arrow are compared as text.
    """
    outcome = _compare(frame)
    if outcome.kind == "not comparable":
        text = _as_text(frame)
        outcome = outcome if text is None else _compare(text)
    return outcome


def _compare(frame: DataFrame) -> CaseOutcome:
    try:
        return _outcome(verify(frame))
    except pa.ArrowException as error:
        return CaseOutcome("not comparable", _sentence(error))
    except Exception as error:
        if error_class(error) in _NO_ARROW:
            return CaseOutcome("not comparable", _sentence(error))
        return _without_class(frame)


def _outcome(report: Report) -> CaseOutcome:
    if not report.accelerated:
        return CaseOutcome("fallback")
    if report.error in _NO_ARROW:
        return CaseOutcome("not comparable", report.error or "")
    if report.ok and report.error is not None:
        return CaseOutcome("both fail", report.error)
    if report.ok:
        return CaseOutcome("same" if report.coverage == 1 else "same in part")
    detail = "; ".join(str(difference) for difference in report.differences)
    return CaseOutcome("several answers" if report.note else "differ", detail)


def _without_class(frame: DataFrame) -> CaseOutcome:
    """The outcome of a query that fails on one side without an error class."""
    planned = plan_frame(frame)
    if not planned.parts:
        return CaseOutcome("fallback")
    expected = _error(frame)
    actual = _error(assemble(planned, planned.parts))
    if isinstance(expected, pa.ArrowException):
        return CaseOutcome("not comparable", _sentence(expected))
    if expected is not None and actual is not None:
        classes = [error_class(expected), error_class(actual)]
        if classes[0] == classes[1]:
            return CaseOutcome("both fail", _sentence(expected))
        return CaseOutcome("differ", f"Spark raises {_sentence(expected)}; the engine {_sentence(actual)}")
    if expected is None and actual is None:
        return CaseOutcome("not comparable", "It failed once, and not again.")
    if expected is None:
        return CaseOutcome("differ", f"Only the engine fails: {_sentence(actual)}")
    return CaseOutcome("differ", f"Only Spark fails: {_sentence(expected)}")


def _error(frame: DataFrame) -> Exception | None:
    try:
        arrow_table(frame)
    except Exception as error:
        return error
    return None


def _as_text(frame: DataFrame) -> DataFrame | None:
    """The frame with columns that have no Arrow type as strings; None where that cannot be had."""
    try:
        names = [f"c{index}" for index in range(len(frame.columns))]
        renamed = frame.toDF(*names)
        columns = []
        for field in renamed.schema.fields:
            text = field.dataType.simpleString()
            plain = isinstance(field.dataType, StringType) or not any(t in text for t in _NO_ARROW_TYPES)
            nested = text.startswith(("struct", "array", "map"))
            column = F.col(field.name)
            columns.append(column if plain and not nested else column.cast("string").alias(field.name))
        return renamed.select(*columns)
    except SPARK_ERRORS:
        return None


def _sentence(error: BaseException | None) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
