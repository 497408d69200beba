"""Runs a batch of expressions in Spark, by ``kquery_plan`` and without Spark, and judges each expression.

Running each of 400 expressions as a query of its own would take minutes, so a batch is judged in two phases:

1. Probe: find the expressions for which Spark raises an error, and those that the engine declines. Neither needs a query
   per expression. Each of these gets its outcome now.
2. Compare: run all others as a single query in each engine, and compare the results column by column. If the query fails,
   divide the expressions into halves, down to the single expression that fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kquery_spark.accelerate.api import kquery_plan
from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.fuzz.batch_results import JudgedExpr, differences, part_of
from kquery_spark.fuzz.batches import Batch
from kquery_spark.fuzz.declines import declined_columns
from kquery_spark.fuzz.expressions import Expr
from kquery_spark.fuzz.in_process import InProcess
from kquery_spark.fuzz.oracle import Answer, CaseOutcome, answer_of, engine_failure, sentence, spark_answer_of
from kquery_spark.fuzz.settings import COMPILED, IN_DRIVER, TIME_ZONE, UNCOMPILED, applied, engine_config
from kquery_spark.fuzz.store import TableStore
from kquery_spark.spark_bridge.plan.row_errors import RowErrors, is_java_error, java_error_class
from kquery_spark.spark_bridge.session.bridge import get_bridge
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS, error_class

_MAX_QUERIES_PER_BATCH = 60
"""The most queries of one batch. A batch that fails is divided into halves, which takes further queries."""
_MAX_RAISING_QUERIES_ON_SPARK = 2
"""The number of expressions of a batch that raise an error and are also run by ``kquery_plan``, each in its own query."""
_SHARES = re.compile(r"BETWEEN|nullif\(")
"""Spark computes the arguments of these in a node below, so their errors cannot be attributed to one expression."""


@dataclass
class _Part:
    """An expression with one value per row, and what the probe has found.

    error: its outcome, if the probe decides it. raised: the class of the error that Spark raises. columns, position: used to
    find the errors of other rows.
    """

    expr: Expr
    error: CaseOutcome | None = None
    raised: str | None = None
    columns: RowErrors | None = None
    position: int = 0


class BatchOracle:
    """Judges batches in a Spark session. The tables are written to the store once."""

    def __init__(self, spark: SparkSession, store: TableStore) -> None:
        self._spark = spark
        self._store = store

    def run(self, batch: Batch) -> list[JudgedExpr]:
        """Return the outcome of each expression, in the order of the batch."""
        self._store.register([batch.table])
        with applied(self._spark, UNCOMPILED | batch.settings):
            return _Run(self._spark, self._store, batch).judge()


class _Run:
    """The run of one batch, in the two phases that the module's docstring describes."""

    def __init__(self, spark: SparkSession, store: TableStore, batch: Batch) -> None:
        self._spark = spark
        self._batch = batch
        zone = str(spark.conf.get(TIME_ZONE))
        context = store.context([batch.table], engine_config(batch.settings), batch.ansi, zone)
        self._in_process = InProcess(context, batch)
        self._judged = [JudgedExpr(expr) for expr in batch.exprs]
        self._runs = 0
        self._raised_on_spark = 0

    def judge(self) -> list[JudgedExpr]:
        """Return all outcomes."""
        self._probe()
        left = [judged for judged in self._judged if judged.outcome is None]
        self._compare(left)
        for judged in self._judged:
            judged.outcome = judged.outcome or CaseOutcome("not compared", "the batch took too many queries")
        return self._judged

    # --- phase 1: expressions that raise errors or are declined -------------------------------------------

    def _probe(self) -> None:
        """Judge the expressions that raise an error for some row, and those that the engine declines."""
        parts = {
            part.sql(): _Part(part)
            for judged in self._judged
            for part in self._batch.row_expressions(judged.expr)
        }
        shared = [part for part in parts.values() if _SHARES.search(part.expr.sql())]
        alone = [part for part in parts.values() if not _SHARES.search(part.expr.sql())]
        self._probe_parts(alone)
        self._probe_parts(shared)
        for judged in self._judged:
            own = [parts[part.sql()] for part in self._batch.row_expressions(judged.expr)]
            judged.outcome = next((part.error for part in own if part.error is not None), None)
            raising_part = next((part for part in own if part.raised is not None), None)
            if judged.outcome is None and raising_part is not None:
                judged.outcome = self._raised(raising_part)

    def _probe_parts(self, parts: Sequence[_Part]) -> None:
        if not parts:
            return
        columns = ", ".join(f"{part.expr.sql()} AS c{n}" for n, part in enumerate(parts))
        table = self._batch.table.name
        try:
            plan = get_bridge(self._spark).optimized(self._spark.sql(f"SELECT {columns} FROM {table}"))
        except SPARK_ERRORS as error:
            if len(parts) > 1:
                self._probe_halves(parts)
            elif isinstance(error, AnalysisException | ParseException):
                parts[0].error = CaseOutcome("invalid", sentence(error))
            else:  # the error of a constant, which Spark evaluates during planning
                raised = java_error_class(error) if is_java_error(error) else error_class(error)
                parts[0].raised = raised or "?"
            return
        self._evaluate(parts, plan)

    def _probe_halves(self, parts: Sequence[_Part]) -> None:
        half = len(parts) // 2
        self._probe_parts(parts[:half])
        self._probe_parts(parts[half:])

    def _evaluate(self, parts: Sequence[_Part], plan: Any) -> None:
        try:
            reasons = declined_columns(self._spark, plan)
            rows = RowErrors(self._spark, plan)
        except (Unsupported, *SPARK_ERRORS) as error:
            # The error is in a node below the projection, so it can belong to any of the expressions.
            if len(parts) > 1:
                self._probe_halves(parts)
            elif isinstance(error, Unsupported):
                parts[0].error = CaseOutcome("fallback", error.reason)
            else:
                parts[0].raised = java_error_class(error)
            return
        raised = rows.first([position for position in range(len(parts)) if position not in reasons])
        for position, part in enumerate(parts):
            if position in reasons:
                part.error = CaseOutcome("fallback", reasons[position])
                continue
            part.raised = raised.get(position)
            part.columns, part.position = rows, position

    def _raised(self, part: _Part) -> CaseOutcome:
        """Return the outcome of an expression for which Spark raises an error. The engine has to raise one as well."""
        if self._batch.shape != "projected":
            # Whether a condition, or the argument of an aggregate, is evaluated at all depends on the optimizer.
            return CaseOutcome("not compared", "an argument raises an error")
        sql = f"SELECT {part.expr.sql()} AS x FROM {self._batch.table.name}"
        if self._raised_on_spark < _MAX_RAISING_QUERIES_ON_SPARK:
            self._raised_on_spark += 1
            try:
                frame = self._spark.sql(sql)
            except SPARK_ERRORS as error:  # an error of the analyzer, not of a value
                return CaseOutcome("invalid", sentence(error))
            actual = _by_engine(frame)
            outcome = actual if isinstance(actual, CaseOutcome) else self._same_error(part, actual[0])
            if outcome.kind != "fallback":
                return self._confirmed(sql, outcome)
        answer = self._in_process.alone(part.expr)
        if answer is None:
            return CaseOutcome("not compared", "raises an error, and is not of the engine's own SQL")
        outcome = self._same_error(part, answer)
        if outcome.kind == "only spark fails" and _SHARES.search(part.expr.sql()):
            return CaseOutcome(
                "not compared", "raises an error only where Spark computes a shared argument before"
            )
        return self._confirmed(sql, replace(outcome, local=True) if outcome.mismatch else outcome)

    def _confirmed(self, sql: str, outcome: CaseOutcome) -> CaseOutcome:
        """Return the outcome, unless Spark raises no error with code generation.

        For example, the generated code of ``concat(NULL, x)`` does not evaluate x.
        """
        if outcome.kind == "only spark fails":
            with applied(self._spark, COMPILED):
                if not isinstance(answer_of(self._spark.sql(sql)), Exception):
                    return CaseOutcome("not compared", "raises an error only where Spark interprets it")
        return outcome

    @staticmethod
    def _same_error(part: _Part, answer: Answer) -> CaseOutcome:
        if not isinstance(answer, Exception):
            return CaseOutcome("only spark fails", f"{part.raised} in Spark", part.raised or "")
        failed = engine_failure(answer)
        if not failed.mismatch:
            return failed
        ours = error_class(answer)
        # Spark evaluates row by row and the engine column by column, so the first error can be that of another row.
        theirs = {part.raised or "", *(part.columns.every(part.position) if part.columns else ())}
        if ours in theirs:
            return CaseOutcome("both fail", ours or "")
        # Errors of Java have no Spark error class but a class name, which has lower-case letters. Any
        # ExecutionError of the engine is accepted for them.
        of_java = not (part.raised or "").isupper() if ours else not all(map(str.isupper, theirs))
        if of_java and (ours or isinstance(answer, ExecutionError)):
            return CaseOutcome("both fail", ours or part.raised or "")
        return CaseOutcome("error class", f"{part.raised} in Spark, {ours or sentence(answer)} in the engine")

    # --- phase 2: expressions that have values --------------------------------------------------------------

    def _compare(self, judged: Sequence[JudgedExpr]) -> None:
        """Run the expressions as one query in each engine. If one of the queries fails, compare the halves."""
        if not judged or self._runs >= _MAX_QUERIES_PER_BATCH:
            return
        self._runs += 1
        batch = self._batch.with_exprs([one.expr for one in judged])
        try:
            frame = self._spark.sql(batch.sql())
            expected = spark_answer_of(frame)
        except (AnalysisException, ParseException) as error:
            expected = error
        if isinstance(expected, Exception):
            self._in_halves(judged, _spark_failure(expected), self._compare)
            return
        self._compare_with(judged, frame, expected)

    def _compare_with(self, judged: Sequence[JudgedExpr], frame: DataFrame, expected: pa.Table) -> None:
        """Run in the engine a query whose result in Spark is ``expected``.

        If the engine fails, compare the halves with the columns of Spark's result, which is not computed again.
        """
        actual = _by_engine(frame)
        if not isinstance(actual, CaseOutcome) and isinstance(actual[0], Exception):
            actual = engine_failure(actual[0])
        batch = self._batch.with_exprs([one.expr for one in judged])
        if isinstance(actual, CaseOutcome):
            if self._runs >= _MAX_QUERIES_PER_BATCH and len(judged) > 1:
                return
            self._runs += 1

            def retry(part: Sequence[JudgedExpr]) -> None:
                start = judged.index(part[0])
                columns = part_of(batch, expected, start, start + len(part))
                query = self._batch.with_exprs([one.expr for one in part]).sql()
                self._compare_with(part, self._spark.sql(query), columns)

            self._in_halves(judged, actual, retry)
            return
        result, schema = actual
        assert isinstance(result, pa.Table)
        for one, outcome in zip(judged, differences(batch, expected, result), strict=True):
            one.outcome = outcome
        if schema != frame.schema and batch.shape != "condition":
            for one, a, b in zip(judged, frame.schema.fields[1:], schema.fields[1:], strict=True):
                if a != b and one.outcome == CaseOutcome("same"):
                    one.outcome = CaseOutcome("schema", f"{a} in Spark, {b} in the engine")
        if batch.in_process:
            same = [one for one in judged if one.outcome == CaseOutcome("same")]
            self._in_process.compare(same, batch, expected)

    def _in_halves(
        self, judged: Sequence[JudgedExpr], outcome: CaseOutcome, run: Callable[[Sequence[JudgedExpr]], None]
    ) -> None:
        if len(judged) == 1:
            judged[0].outcome = outcome
            return
        half = len(judged) // 2
        # Many queries follow. In the driver, they take a tenth of the time.
        with applied(self._spark, IN_DRIVER):
            run(judged[:half])
            run(judged[half:])


def _by_engine(frame: DataFrame) -> CaseOutcome | tuple[Answer, StructType]:
    """Return the engine's answer and its Spark schema; a CaseOutcome if the engine declines the query."""
    try:
        fast = frame.transform(kquery_plan, when="always", fallback="error")
    except Unsupported as error:
        return CaseOutcome("fallback", error.reason)
    except Exception as error:
        return error, frame.schema
    return answer_of(fast), fast.schema


def _spark_failure(error: Exception) -> CaseOutcome:
    if isinstance(error, AnalysisException | ParseException):
        return CaseOutcome("invalid", sentence(error))
    return CaseOutcome("not compared", sentence(error))
