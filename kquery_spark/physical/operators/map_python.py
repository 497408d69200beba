"""MapPythonExec: calls a Python UDF with an iterator over all batches of a task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.operators.python_exec import PythonExec
from kquery_spark.physical.python_batches import PythonEvaluation, full_batches
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class MapPythonExec(PythonExec):
    """Implements ``logical.MapPython``. The function is called even without rows, and may read its input lazily."""

    child: PhysicalPlan
    args: tuple[Expr, ...]
    calls: PythonCalls
    output: pa.Schema

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        evaluate: PythonEvaluation[pa.RecordBatch] = self.evaluation()
        batches = full_batches(self.child.run(task), self.calls.batch_rows)
        yield from map(self.result_batch, evaluate(map(self.arguments().to_arrow, batches)))

    @override
    def label(self) -> str:
        return f"MapPythonExec: {self.calls}"
