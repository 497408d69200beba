"""Calls users' Python functions inside a task of the engine, through the code of PySpark's own worker.

PySpark's ``worker.read_udfs`` reads the message that Spark's JVM writes and returns the function that maps batches of
arguments to batches of results, with all conversions of values and all checks of the release. Here the message comes from
the plan, and the batches from the engine's operators instead of a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from kquery_spark.errors import KQueryError
from kquery_spark.spark_bridge.pickled_values import PICKLED, result_array, row_values
from kquery_spark.spark_bridge.python_message import PythonCall, read_functions
from kquery_spark.task_errors import TaskError


@dataclass(frozen=True)
class PythonEvaluation:
    """The functions of one of Spark's nodes, all of one evaluation type; a callable, pickled into the plan.

    settings: those that Spark's JVM sends to workers. schema: the arguments' as Spark's JSON. results: types of the engine.
    """

    eval_type: int
    calls: tuple[PythonCall, ...]
    settings: Mapping[str, str]
    schema: str
    results: tuple[pa.DataType, ...]

    def __call__(self, arguments: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results for batches of arguments. TaskError of the kind "query" if a function, or PySpark's worker, raises."""
        if TaskContext.get() is None:
            raise KQueryError("a Python function of Spark's runs in Spark's tasks only")
        guarded = _Arguments(arguments)
        try:
            yield from self._evaluate(guarded)
        except Exception as error:
            if guarded.error is None:
                text = f"{type(error).__name__}: {error}"
                raise TaskError("query", "PythonException", text) from error
        if guarded.error is not None:  # even if the user's function caught it
            raise guarded.error

    def _evaluate(self, arguments: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import worker

        message = self.eval_type, self.calls, self.settings, self.schema
        function, load, dump = read_functions(worker, *message)
        if self.eval_type == PICKLED:
            yield from self._of_rows(function, arguments)
            return
        for output in function(0, (item for batch in arguments for item in load(batch))):
            for batch in dump(output):
                yield pa.RecordBatch.from_arrays(
                    [_as_type(c, dtype) for c, dtype in zip(batch.columns, self.results, strict=True)],
                    names=[f"_{i}" for i in range(len(self.results))],
                )

    def _of_rows(
        self, function: Callable[..., Iterator[Any]], arguments: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Functions of single rows: ``@udf``, whose values Spark pickles."""
        for batch in arguments:
            values = list(function(0, row_values(batch)))
            columns = [values] if len(self.results) == 1 else list(zip(*values, strict=True))
            arrays = [result_array(c, dtype) for c, dtype in zip(columns, self.results, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=[f"_{i}" for i in range(len(arrays))])


class _Arguments(Iterator[pa.RecordBatch]):
    """Batches from the engine; ``error`` is what computing them raised, which is no error of the user's function."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.error: Exception | None = None

    def __next__(self) -> pa.RecordBatch:
        try:
            return next(self._batches)
        except StopIteration:
            raise
        except Exception as error:
            self.error = error
            raise


def _as_type(array: pa.Array, dtype: pa.DataType) -> pa.Array:
    """An array of results in the engine's type, which differs by names of nested fields, time zone or offset width."""
    return array if array.type == dtype else array.cast(dtype)
