"""CogroupPythonExec: calls a Python UDF on pairs of groups with the same key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.physical.clusters import pieces_of_groups, with_group_starts
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.operators.python_exec import PythonExec
from kquery_spark.physical.python_batches import (
    Arguments,
    PythonEvaluation,
    coalesced,
    combined_batches,
)
from kquery_spark.types.batch import Batch

Pair = tuple[list[pa.RecordBatch], list[pa.RecordBatch]]


@dataclass(frozen=True)
class CogroupPythonExec(PythonExec):
    """Implements ``logical.CogroupPython``. All rows of a key must be in this task, sorted by ``keys`` and ``is_right``.

    The child outputs the rows of both sides. ``is_right`` is True for those of the right side. The first ``left_args``
    arguments are those of the left side. Only one pair of groups, and the results of a few pairs, are in memory at a time.
    """

    child: PhysicalPlan
    keys: tuple[Expr, ...]
    is_right: Expr
    args: tuple[Expr, ...]
    left_args: int
    calls: PythonCalls
    output: pa.Schema

    @override
    def call_functions(self, rows: Iterator[Batch], task: TaskContext) -> Iterator[Batch]:
        evaluate: PythonEvaluation[Pair] = self.evaluation()
        results = coalesced(evaluate(self._pairs(rows)), task.config.batch_rows)
        return map(self.result_batch, results)

    def _pairs(self, batches: Iterator[Batch]) -> Iterator[Pair]:
        schema = self.child.schema
        arguments = Arguments((self.is_right, *self.args), schema)
        clusters = with_group_starts(batches, Program(list(self.keys), schema))
        split = 1 + self.left_args
        left, right = range(1, split), range(split, 1 + len(self.args))
        for pieces in pieces_of_groups((arguments.to_arrow(batch), starts) for batch, starts in clusters):
            # In each piece, the left rows come first. ``ends`` has the number of left rows in each piece.
            ends = [piece.column(0).false_count for piece in pieces]
            lefts = [piece.slice(0, end) for piece, end in zip(pieces, ends, strict=True)]
            rights = [piece.slice(end) for piece, end in zip(pieces, ends, strict=True)]
            yield self._side(lefts, left), self._side(rights, right)

    def _side(self, pieces: Sequence[pa.RecordBatch], columns: Sequence[int]) -> list[pa.RecordBatch]:
        """Return the rows of one side; a batch without rows if there are none."""
        filled = [piece for piece in pieces if piece.num_rows] or pieces[:1]
        return combined_batches([piece.select(list(columns)) for piece in filled], self.calls.batch_rows)

    @override
    def label(self) -> str:
        return f"CogroupPythonExec: groupExpr=[{', '.join(map(str, self.keys))}], call={self.calls}"
