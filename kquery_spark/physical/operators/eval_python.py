"""EvalPythonExec: calls Python UDFs on batches of arguments and appends their results to the input rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.operators.python_exec import PythonExec
from kquery_spark.physical.python_batches import PendingRows, PythonEvaluation
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class EvalPythonExec(PythonExec):
    """Implements ``logical.EvalPython``. ``output`` has the ``required`` columns of the child, then the results."""

    child: PhysicalPlan
    args: tuple[Expr, ...]
    calls: PythonCalls
    required: tuple[str, ...]
    output: pa.Schema

    @override
    def call_functions(self, rows: Iterator[Batch], task: TaskContext) -> Iterator[Batch]:
        evaluate: PythonEvaluation[pa.RecordBatch] = self.evaluation()
        pending = PendingRows([self.child.schema.get_field_index(name) for name in self.required])
        for results in evaluate(self.argument_batches(rows, pending.add)):
            yield from pending.combine_with(results, self.output)
        pending.check_none_left()

    @override
    def label(self) -> str:
        return f"EvalPythonExec: [{self.calls.with_names}]"
