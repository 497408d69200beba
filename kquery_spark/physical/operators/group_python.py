"""GroupPythonExec: calls Python UDFs on each group of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, Named
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.physical.clusters import pieces_of_groups, with_group_starts
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.operators.python_exec import PythonExec
from kquery_spark.physical.python_batches import (
    PendingRows,
    PythonEvaluation,
    coalesced,
    combined_batches,
)
from kquery_spark.types.batch import Batch, from_vectors

Group = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class GroupPythonExec(PythonExec):
    """Implements ``logical.GroupPython``. All rows of a group must be in this task and consecutive.

    Only one group, and the results of a few groups, are in memory at a time.
    """

    child: PhysicalPlan
    keys: tuple[Named, ...]
    args: tuple[Expr, ...]
    calls: PythonCalls
    aggregates: bool
    output: pa.Schema

    @override
    def call_functions(self, rows: Iterator[Batch], task: TaskContext) -> Iterator[Batch]:
        evaluate: PythonEvaluation[Group] = self.evaluation()
        pending = PendingRows(list(range(len(self.keys))))
        for results in coalesced(evaluate(self._groups(rows, pending)), task.config.batch_rows):
            if self.aggregates:
                yield from pending.combine_with(results, self.output)
            else:
                yield self.result_batch(results)
        pending.check_none_left()

    def _groups(self, batches: Iterator[Batch], pending: PendingRows) -> Iterator[Group]:
        """Yield the arguments of each group. The keys of aggregated groups are added to ``pending`` until their results."""
        for pieces in pieces_of_groups(self._with_starts(batches, pending)):
            yield iter(combined_batches(pieces, self.calls.batch_rows))

    def _with_starts(
        self, batches: Iterator[Batch], pending: PendingRows
    ) -> Iterator[tuple[pa.RecordBatch, list[int]]]:
        """Yield batches of arguments, each with the rows at which a group begins."""
        arguments = self.arguments()
        keys = Program([key.expr for key in self.keys], self.child.schema)
        for batch, starts in with_group_starts(batches, keys):
            if self.aggregates and starts:
                pending.add(self._keys(keys, batch.take(pa.array(starts))))
            yield arguments.to_arrow(batch), starts

    def _keys(self, program: Program, rows: Batch) -> Batch:
        """Return the keys of rows that begin groups, unchanged: Spark does not normalize -0.0 for Python UDFs."""
        schema = pa.schema([key.field for key in self.keys])
        return from_vectors(schema, program.run(rows), rows.num_rows)

    @override
    def label(self) -> str:
        shown = ", ".join(map(str, self.keys))
        return f"GroupPythonExec: groupExpr=[{shown}], calls=[{self.calls}]"
