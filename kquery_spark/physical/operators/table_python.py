"""TablePythonExec: calls a Python table function (UDTF) and joins the rows that it returns with the input rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.operators.python_exec import PythonExec
from kquery_spark.physical.python_batches import PythonEvaluation, result_columns
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class TablePythonExec(PythonExec):
    """Implements ``logical.TablePython``. ``output`` has the ``required`` columns of the child, then the results.

    by_row: the first column of the results has the position of the input row. skips_empty: the function is not called in a
    task without rows.
    """

    child: PhysicalPlan
    args: tuple[Expr, ...]
    calls: PythonCalls
    by_row: bool
    skips_empty: bool
    required: tuple[str, ...]
    output: pa.Schema

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        """Yield the output. Without ``skips_empty``, the function is called even for no rows, because it can raise."""
        return super().execute(task) if self.skips_empty else self.call_functions(self.child.run(task), task)

    @override
    def call_functions(self, rows: Iterator[Batch], task: TaskContext) -> Iterator[Batch]:
        evaluate: PythonEvaluation[pa.RecordBatch] = self.evaluation()
        waiting = _WaitingRows([self.child.schema.get_field_index(name) for name in self.required])
        for results in evaluate(self.argument_batches(rows, waiting.add)):
            yield from (
                waiting.combine_with(results, self.output) if self.by_row else [self.result_batch(results)]
            )

    @override
    def label(self) -> str:
        return f"TablePythonExec: {self.calls}"


class _WaitingRows:
    """Input rows that wait for their results. column_indices: the columns that the output needs.

    An input row can have any number of result rows, so it is repeated for each of them, or dropped.
    """

    def __init__(self, column_indices: list[int]) -> None:
        self._column_indices = column_indices
        self._batches: deque[Batch] = deque()
        self._first = 0

    def add(self, batch: Batch) -> None:
        """Append rows."""
        if self._column_indices:
            self._batches.append(batch.select(self._column_indices))

    def combine_with(self, results: pa.RecordBatch, output: pa.Schema) -> Iterator[Batch]:
        """Yield the results, each appended to a copy of its input row.

        results: the first column has the position of the input row among all rows, in rising order. A batch of input rows
        is dropped when a result refers to a later batch.
        """
        columns = result_columns(
            results.select(range(1, results.num_columns)), output.types[len(self._column_indices) :]
        )
        if not self._column_indices:
            yield Batch(output, tuple(columns), results.num_rows)
            return
        places = results.column(0).to_numpy()
        start = 0
        while start < len(places):
            batch = self._batches[0]
            end = int(np.searchsorted(places, self._first + batch.num_rows))
            if end > start:
                repeated = batch.take(pa.array(places[start:end] - self._first))
                piece = (column.slice(start, end - start) for column in columns)
                yield Batch(output, (*repeated.columns, *piece), end - start)
            if end < len(places):
                self._first += self._batches.popleft().num_rows
            start = end
