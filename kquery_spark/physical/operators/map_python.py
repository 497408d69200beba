"""MapPythonExec: calls a Python function of Spark's users on all batches of a task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, cast

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.functions.user import unpickled
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.physical.python_batches import Arguments, Evaluation, full_batches, result_columns
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class MapPythonExec(UnaryExec):
    """See ``logical.MapPython``; the function is called for a task without rows, too, and reads its input as it likes."""

    child: PhysicalPlan
    args: tuple[Expr, ...]
    call: str
    batch_rows: int
    output: pa.Schema
    code: bytes = field(repr=False)

    calls_python: ClassVar[bool] = True

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.output

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        evaluate = cast(Evaluation[pa.RecordBatch], unpickled(self.code))
        arguments = Arguments(self.args, self.child.schema)
        batches = map(arguments.of, full_batches(self.child.run(task), self.batch_rows))
        for results in evaluate(batches):
            yield Batch(self.output, tuple(result_columns(results, self.output.types)), results.num_rows)

    @override
    def label(self) -> str:
        return f"MapPythonExec: {self.call}"
