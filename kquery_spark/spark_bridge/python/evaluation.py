"""Calls users' Python functions inside a task of the engine, through the code of PySpark's own worker.

PySpark's ``worker.read_udfs`` reads the message that Spark's JVM writes and returns the function that maps batches of
arguments to batches of results, with all conversions of values and all checks of the release. Here the message comes from
the plan, and the batches from the engine's operators instead of a socket.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from typing_extensions import override

from kquery_spark.errors import KQueryError
from kquery_spark.spark_bridge.plan.spark_types import spark_schema
from kquery_spark.spark_bridge.python.call import PythonCall
from kquery_spark.spark_bridge.python.inputs import Inputs
from kquery_spark.spark_bridge.python.kinds import PythonKind, kind_of
from kquery_spark.spark_bridge.python.message import read_functions
from kquery_spark.spark_bridge.python.pickled_arguments import PickledArguments
from kquery_spark.spark_bridge.python.pickled_results import PickledResults
from kquery_spark.spark_bridge.python.pickled_values import PICKLED, Pickling
from kquery_spark.spark_bridge.python.results import checked_results
from kquery_spark.task_errors import TaskError
from kquery_spark.types.labels import relabeled

T = TypeVar("T")
Group = Iterator[pa.RecordBatch]
Pair = tuple[Sequence[pa.RecordBatch], Sequence[pa.RecordBatch]]


@dataclass(frozen=True)
class PythonEvaluation:
    """The functions of one of Spark's nodes, all of one evaluation type; a callable, pickled into the plan.

    settings: the settings that Spark's JVM sends to workers. arguments: the schema in Spark's types. results: the schema in
    the engine's types. pickling: how values of ``@udf`` without Arrow are pickled.
    """

    eval_type: int
    calls: tuple[PythonCall, ...]
    settings: Mapping[str, str]
    arguments: pa.Schema
    results: pa.Schema
    pickling: Pickling

    def __call__(self, arguments: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results for batches of arguments. TaskError of the kind "query" if a function, or PySpark's worker, raises."""
        return with_query_errors(arguments, self._evaluate)

    def _evaluate(self, arguments: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import worker

        message = self.eval_type, self.calls, self.settings, json.dumps(spark_schema(self.arguments))
        function, inputs, dump = read_functions(worker, *message)
        shown = (as_function_sees(batch, self.arguments) for batch in arguments)
        if self.eval_type == PICKLED:
            yield from self._of_rows(function, shown)
            return
        for output in function(0, (item for batch in shown for item in inputs.copied(batch))):
            for batch in dump(output):
                yield checked_results(batch, self.results)

    def _of_rows(
        self, function: Callable[..., Iterator[Any]], arguments: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Call functions of single rows (``@udf``), whose values Spark pickles."""
        to_python, to_arrow = PickledArguments(self.pickling), PickledResults(self.pickling)
        for batch in arguments:
            values = list(function(0, to_python.rows(batch)))
            columns = [values] if len(self.results) == 1 else list(zip(*values, strict=True))
            types = self.results.types
            arrays = [to_arrow.array(c, dtype) for c, dtype in zip(columns, types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=[f"_{i}" for i in range(len(arrays))])


@dataclass(frozen=True)
class _TableEvaluation(Generic[T]):
    """Base of evaluations whose functions see more than single rows; a callable, pickled into the plan.

    arguments: the columns that functions receive, with the names and nullability that they see. results: the schema in the
    engine's types.
    """

    eval_type: int
    calls: tuple[PythonCall, ...]
    settings: Mapping[str, str]
    arguments: pa.Schema
    results: pa.Schema

    def __call__(self, arguments: Iterator[T]) -> Iterator[pa.RecordBatch]:
        """Return the results of the functions for arguments, in their order."""
        return with_query_errors(arguments, self._evaluate)

    def _items(self, inputs: Inputs, arguments: Iterator[T]) -> Iterator[Any]:
        """Yield the arguments in the form that PySpark's worker function expects."""
        raise NotImplementedError

    @property
    def _kind(self) -> PythonKind:
        kind = kind_of(self.eval_type)
        assert kind is not None
        return kind

    def _evaluate(self, arguments: Iterator[T]) -> Iterator[pa.RecordBatch]:
        from pyspark import worker

        function, inputs, dump = read_functions(worker, self.eval_type, self.calls, self.settings, "")
        gives_rows = self._kind.gives_rows
        for output in function(0, self._items(inputs, arguments)):
            for batch in dump(output):
                if not gives_rows:
                    yield checked_results(batch, self.results)
                elif batch.num_rows:
                    yield checked_results(fields_of(batch), self.results)

    def _as_function_sees(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert a batch of arguments to the form that PySpark's worker reads."""
        named = as_function_sees(batch, self.arguments)
        if not self._kind.takes_rows:
            return named
        struct = pa.StructArray.from_arrays(named.columns, fields=list(self.arguments))
        return pa.RecordBatch.from_arrays([struct], names=["struct"])


@dataclass(frozen=True)
class BatchesEvaluation(_TableEvaluation[pa.RecordBatch]):
    """A function of all batches of a task (``mapInPandas``), which may read any number of batches before it yields one."""

    @override
    def _items(self, inputs: Inputs, arguments: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        for batch in arguments:
            yield from inputs.batch(self._as_function_sees(batch))


@dataclass(frozen=True)
class GroupsEvaluation(_TableEvaluation[Group]):
    """Functions of whole groups: ``groupBy().agg``, with one row per group, or ``applyInPandas``."""

    @override
    def _items(self, inputs: Inputs, arguments: Iterator[Group]) -> Iterator[Any]:
        for group in arguments:
            yield from inputs.group(map(self._as_function_sees, group))


@dataclass(frozen=True)
class CogroupsEvaluation(_TableEvaluation[Pair]):
    """A function of pairs of groups. arguments: the columns of the left group. right: those of the right group."""

    right: pa.Schema

    @override
    def _items(self, inputs: Inputs, arguments: Iterator[Pair]) -> Iterator[Any]:
        for left, right in arguments:
            yield from inputs.cogroup(
                [as_function_sees(batch, self.arguments) for batch in left],
                [as_function_sees(batch, self.right) for batch in right],
            )


def with_query_errors(
    arguments: Iterator[T], evaluate: Callable[[Iterator[T]], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """Yield the results of an evaluation; errors of functions become errors of the query, the engine's own do not change."""
    if TaskContext.get() is None:
        raise KQueryError("a PySpark function can only run in Spark's tasks")
    guarded = _Arguments(arguments)
    try:
        yield from evaluate(guarded)
    except Exception as error:
        if guarded.error is None:
            text = f"{type(error).__name__}: {error}"
            raise TaskError("query", "PythonException", text) from error
    if guarded.error is not None:  # even if the user's function caught it
        raise guarded.error


class _Arguments(Iterator[T], Generic[T]):
    """Arguments from the engine; ``error`` is an error of computing them, to distinguish it from errors of the function."""

    def __init__(self, arguments: Iterator[T]) -> None:
        self._arguments = arguments
        self.error: Exception | None = None

    def __next__(self) -> T:
        try:
            return next(self._arguments)
        except StopIteration:
            raise
        except Exception as error:
            self.error = error
            raise


def as_function_sees(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch of arguments to the names and types that functions see."""
    if not batch.num_columns:
        return batch
    columns = [relabeled(column, dtype) for column, dtype in zip(batch.columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def fields_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the fields of results that are sent as one struct column; like Spark, ignore the struct's validity."""
    struct = batch.column(0)
    columns = [struct.field(i) for i in range(struct.type.num_fields)]
    return pa.RecordBatch.from_arrays(columns, names=[f"_{i}" for i in range(len(columns))])
