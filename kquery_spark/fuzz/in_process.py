"""Runs a batch again in the engine without Spark, for the expressions that the engine's own SQL supports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from kquery_spark.context.execution_context import ExecutionContext
from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.fuzz.batch_results import JudgedExpr, condition_outcome, differences, rows_by_condition
from kquery_spark.fuzz.batches import Batch
from kquery_spark.fuzz.expressions import Expr
from kquery_spark.fuzz.oracle import Answer, failure, in_schema_of


class InProcess:
    """One batch in an ``ExecutionContext``."""

    def __init__(self, context: ExecutionContext, batch: Batch) -> None:
        self._context = context
        self._batch = batch

    def alone(self, expr: Expr) -> Answer | None:
        """Return the values of an expression, or its error; None if the engine's own SQL does not support it."""
        try:
            return self._context.sql(f"SELECT {expr.sql()} AS x FROM {self._batch.table.name}").to_arrow()
        except (Unsupported, PlanError):
            return None
        except Exception as error:
            return error

    def compare(self, judged: Sequence[JudgedExpr], batch: Batch, expected: pa.Table) -> None:
        """Judge expressions that have the same result in Spark and in the engine on Spark.

        expected: Spark's result of ``batch``.
        """
        known = [one for one in judged if self._has(one.expr)]
        if not known:
            return
        positions = {id(expr): n for n, expr in enumerate(batch.exprs)}
        columns = [positions[id(one.expr)] for one in known]
        if batch.shape != "condition":
            self._columns(known, expected.select([0, *(n + 1 for n in columns)]))
            return
        passed = rows_by_condition(expected, len(batch.exprs))
        for one, n in zip(known, columns, strict=True):
            self._condition(one, passed[n])

    def _has(self, expr: Expr) -> bool:
        try:
            return bool(self._context.sql(self._batch.with_exprs([expr]).sql()).schema.names)
        except (Unsupported, PlanError):
            return False
        except Exception:  # the error of a constant, which running the query will raise again
            return True

    def _run(self, judged: Sequence[JudgedExpr]) -> Answer:
        try:
            return self._context.sql(self._batch.with_exprs([one.expr for one in judged]).sql()).to_arrow()
        except Exception as error:
            return error

    def _columns(self, judged: Sequence[JudgedExpr], expected: pa.Table) -> None:
        """Run one query for all expressions; if it fails, run the halves.

        expected: the row number, and one column per expression.
        """
        result = self._run(judged)
        if isinstance(result, Exception):
            half = len(judged) // 2
            if not half:
                self._fails(judged[0], expected.column(1), result)
                return
            self._columns(judged[:half], expected.select(range(half + 1)))
            self._columns(judged[half:], expected.select([0, *range(half + 1, len(judged) + 1)]))
            return
        batch = self._batch.with_exprs([one.expr for one in judged])
        renamed = expected.rename_columns(result.column_names)
        result = in_schema_of(renamed, result)
        for one, outcome in zip(judged, differences(batch, renamed, result), strict=True):
            one.in_process = not outcome.mismatch
            if outcome.mismatch:
                one.outcome = replace(outcome, local=True)

    def _condition(self, judged: JudgedExpr, expected: list[int]) -> None:
        result = self._run([judged])
        if isinstance(result, Exception):
            if not isinstance(result, Unsupported | PlanError):
                judged.outcome = replace(failure("only engine fails", result), local=True)
            return
        outcome = condition_outcome(expected, rows_by_condition(result, 1)[0])
        judged.in_process = not outcome.mismatch
        if outcome.mismatch:
            judged.outcome = replace(outcome, local=True)

    @staticmethod
    def _fails(judged: JudgedExpr, expected: pa.ChunkedArray, error: Exception) -> None:
        # Spark's optimizer replaces a call with a constant NULL argument by NULL, even if another argument would raise.
        if not isinstance(error, Unsupported | PlanError) and expected.null_count < len(expected):
            judged.outcome = replace(failure("only engine fails", error), local=True)
