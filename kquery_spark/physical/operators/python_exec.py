"""The base class of the operators that call Python UDFs."""

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
from kquery_spark.physical.python_batches import Arguments, PythonEvaluation, full_batches, result_columns
from kquery_spark.types.batch import Batch


class PythonExec(UnaryExec):
    """Makes the ``calls`` of Python UDFs with ``args``. ``output`` is the schema. Subclasses have all three as fields."""

    if TYPE_CHECKING:

        @property
        def args(self) -> tuple[Expr, ...]:
            """The arguments of the functions."""

        @property
        def calls(self) -> PythonCalls:
            """The calls, with the pickled code that makes them."""

        @property
        def output(self) -> pa.Schema:
            """The output schema."""

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.output

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        """Yield the output. In a task without rows, the functions are not unpickled. Spark does not call them either."""
        rows = self.child.run(task)
        first = next(rows, None)
        if first is not None:
            yield from self.call_functions(chain((first,), rows), task)

    def call_functions(self, rows: Iterator[Batch], task: TaskContext) -> Iterator[Batch]:
        """Return the output for the child's rows. There is at least one row."""
        raise NotImplementedError

    def arguments(self) -> Arguments:
        """Return the object that computes the arguments from the child's batches."""
        return Arguments(self.args, self.child.schema)

    def argument_batches(
        self, rows: Iterator[Batch], on_input: Callable[[Batch], None]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the arguments of all rows, in batches of the size that Spark sends to Python.

        on_input: called with the input rows of each batch before the batch is yielded.
        """
        arguments = self.arguments()
        for batch in full_batches(rows, self.calls.batch_rows):
            on_input(batch)
            yield arguments.to_arrow(batch)

    def evaluation(self) -> PythonEvaluation[Any]:
        """Return the evaluation, unpickled for this task alone."""
        return cast(PythonEvaluation[Any], unpickle_code(self.calls.code))

    def result_batch(self, results: pa.RecordBatch) -> Batch:
        """Return the results of functions as an output batch. For operators whose output has no other columns."""
        return Batch(self.output, tuple(result_columns(results, self.output.types)), results.num_rows)
