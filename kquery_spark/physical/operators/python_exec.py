"""Base of the operators that call Python functions of Spark's users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.functions.user import unpickle_code
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.physical.operators.base import TaskContext, UnaryExec
from kquery_spark.physical.python_batches import Arguments, Evaluation, full_batches, result_columns
from kquery_spark.types.batch import Batch


class PythonExec(UnaryExec):
    """Makes ``calls`` of functions on ``args``; ``output`` is the schema. All three are fields."""

    if TYPE_CHECKING:

        @property
        def args(self) -> tuple[Expr, ...]:
            """What the functions are called on."""

        @property
        def calls(self) -> PythonCalls:
            """The calls, with the code that makes them."""

        @property
        def output(self) -> pa.Schema:
            """The schema."""

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.output

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        """Does not even unpickle the functions for a task without rows: Spark does not call them either."""
        rows = self.child.run(task)
        first = next(rows, None)
        if first is not None:
            yield from self.call_functions(chain((first,), rows), task)

    def call_functions(self, rows: Iterator[Batch], task: TaskContext) -> Iterator[Batch]:
        """Return the output for the child's rows. There is at least one row."""
        raise NotImplementedError

    def arguments(self) -> Arguments:
        """Computes the arguments from the child's batches."""
        return Arguments(self.args, self.child.schema)

    def waiting_arguments(
        self, rows: Iterator[Batch], waits: Callable[[Batch], None]
    ) -> Iterator[pa.RecordBatch]:
        """The arguments of all rows, in batches as Spark hands them to Python; before each, ``waits`` gets its rows."""
        arguments = self.arguments()
        for batch in full_batches(rows, self.calls.batch_rows):
            waits(batch)
            yield arguments.of(batch)

    def evaluation(self) -> Evaluation[Any]:
        """The evaluation, unpickled for this task alone."""
        return cast(Evaluation[Any], unpickle_code(self.calls.code))

    def result_batch(self, results: pa.RecordBatch) -> Batch:
        """Results of functions as a batch of the output, which has no other columns."""
        return Batch(self.output, tuple(result_columns(results, self.output.types)), results.num_rows)
