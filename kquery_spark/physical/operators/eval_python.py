"""EvalPythonExec: batches of arguments to Python functions of Spark's users, and their results beside the input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.operators.python_exec import PythonExec
from kquery_spark.physical.python_batches import Evaluation, PendingRows, full_batches
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class EvalPythonExec(PythonExec):
    """See ``logical.EvalPython``; ``kept`` child columns come first in ``output``, the results last."""

    child: PhysicalPlan
    args: tuple[Expr, ...]
    calls: PythonCalls
    kept: tuple[str, ...]
    output: pa.Schema

    @override
    def call_functions(self, rows: Iterator[Batch], task: TaskContext) -> Iterator[Batch]:
        evaluate: Evaluation[pa.RecordBatch] = self.evaluation()
        pending = PendingRows([self.child.schema.get_field_index(name) for name in self.kept])
        for results in evaluate(self._arguments(rows, pending)):
            yield from pending.beside(results, self.output)
        pending.check_none_left()

    def _arguments(self, rows: Iterator[Batch], pending: PendingRows) -> Iterator[pa.RecordBatch]:
        """The arguments of all rows, which wait for their results from then on."""
        arguments = self.arguments()
        for batch in full_batches(rows, self.calls.batch_rows):
            pending.add(batch)
            yield arguments.of(batch)

    @override
    def label(self) -> str:
        return f"EvalPythonExec: [{self.calls.with_names}]"
