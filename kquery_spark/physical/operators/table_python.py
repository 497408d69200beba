"""TablePythonExec: calls a Python table function of Spark's users, and puts the rows it gives beside those of the input."""

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
from kquery_spark.physical.python_batches import Evaluation, result_columns
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class TablePythonExec(PythonExec):
    """See ``logical.TablePython``; ``kept`` child columns come first in ``output``, the results last.

    by_row: results come after the place of the row that they are for. skips_empty: the function is not called for a task
    without rows.
    """

    child: PhysicalPlan
    args: tuple[Expr, ...]
    calls: PythonCalls
    by_row: bool
    skips_empty: bool
    kept: tuple[str, ...]
    output: pa.Schema

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        """Calls the function where no row is, too, unless ``skips_empty``: it may raise an error before the first row."""
        return super().execute(task) if self.skips_empty else self.call_functions(self.child.run(task), task)

    @override
    def call_functions(self, rows: Iterator[Batch], task: TaskContext) -> Iterator[Batch]:
        evaluate: Evaluation[pa.RecordBatch] = self.evaluation()
        waiting = _WaitingRows([self.child.schema.get_field_index(name) for name in self.kept])
        for results in evaluate(self.waiting_arguments(rows, waiting.add)):
            yield from waiting.beside(results, self.output) if self.by_row else [self.result_batch(results)]

    @override
    def label(self) -> str:
        return f"TablePythonExec: {self.calls}"


class _WaitingRows:
    """Rows, narrowed to the columns at ``kept``, that may be repeated beside results."""

    def __init__(self, kept: list[int]) -> None:
        self._kept = kept
        self._batches: deque[Batch] = deque()
        self._first = 0

    def add(self, batch: Batch) -> None:
        """Rows at the end."""
        if self._kept:
            self._batches.append(batch.select(self._kept))

    def beside(self, results: pa.RecordBatch, output: pa.Schema) -> Iterator[Batch]:
        """Results, whose first column is the place of a row among all rows, each beside a copy of its row."""
        columns = result_columns(
            results.select(range(1, results.num_columns)), output.types[len(self._kept) :]
        )
        if not self._kept:
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
