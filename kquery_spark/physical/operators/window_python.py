"""WindowPythonExec: calls Python UDFs on windows of rows and appends their results to the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, Frame, SortKey
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.logical.window import format_window
from kquery_spark.physical.clusters import pieces_of_groups, with_group_starts
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, clustered_keys
from kquery_spark.physical.operators.python_exec import PythonExec
from kquery_spark.physical.python_batches import Arguments, PendingRows, PythonEvaluation, combined_batches
from kquery_spark.physical.windows import arrange
from kquery_spark.physical.windows.frames import frame_rows
from kquery_spark.types.batch import Batch, coalesced, concat

Partition = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class WindowPythonExec(PythonExec):
    """Implements ``logical.WindowPython``. All rows of a partition must be in this task, sorted by ``partition``, ``order``.

    Only one partition at a time is in memory. ``output`` has the ``required`` columns of the child, then the results.
    """

    child: PhysicalPlan
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    frames: tuple[Frame, ...]
    args: tuple[Expr, ...]
    calls: PythonCalls
    required: tuple[str, ...]
    output: pa.Schema

    @override
    def clusters_by(self, keys: frozenset[Expr]) -> bool:
        return keys in clustered_keys(self.partition, [key.expr for key in self.order])

    @override
    def call_functions(self, rows: Iterator[Batch], task: TaskContext) -> Iterator[Batch]:
        evaluate: PythonEvaluation[Partition] = self.evaluation()
        pending = PendingRows([self.child.schema.get_field_index(name) for name in self.required])
        results = evaluate(self._partitions(rows, pending))
        computed = (batch for result in results for batch in pending.combine_with(result, self.output))
        yield from coalesced(computed, task.config.batch_rows)
        pending.check_none_left()

    def _partitions(self, batches: Iterator[Batch], pending: PendingRows) -> Iterator[Partition]:
        """Yield the arguments of each partition. Its rows are added to ``pending``, to await their results."""
        schema, arguments = self.child.schema, self.arguments()
        keys = Program(list(self.partition), schema)
        for pieces in pieces_of_groups(with_group_starts(batches, keys)):
            rows = concat(schema, pieces)
            pending.add(rows)
            yield iter(combined_batches([self._with_bounds(rows, arguments)], self.calls.batch_rows))

    def _with_bounds(self, rows: Batch, arguments: Arguments) -> pa.RecordBatch:
        """Return the bounds of each row's frames, then the arguments, as columns."""
        columns = [*self._bounds(rows), *arguments.to_arrow(rows).columns]
        return pa.RecordBatch.from_arrays(columns, names=[f"_{i}" for i in range(len(columns))])

    def _bounds(self, rows: Batch) -> Iterator[pa.Array]:
        if not self.frames:
            return
        n = rows.num_rows
        values = Program([key.expr for key in self.order], rows.schema).run(rows)
        order = [(key, v.filled(n)) for key, v in zip(self.order, values, strict=True)]
        _, segments = arrange([], order, n)
        for frame in self.frames:
            for bound in frame_rows(frame, segments, order):
                yield pa.array(bound.astype(np.int32))

    @override
    def label(self) -> str:
        return f"WindowPythonExec: {format_window(self.calls.shown, self.partition, self.order)}"
