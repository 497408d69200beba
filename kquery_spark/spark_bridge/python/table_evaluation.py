"""Calls users' Python table functions inside a task of the engine, through the code of PySpark's own worker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.errors import KQueryError
from kquery_spark.spark_bridge.plan.spark_types import spark_schema
from kquery_spark.spark_bridge.python.evaluation import as_function_sees, fields_of, with_query_errors
from kquery_spark.spark_bridge.python.kinds import PICKLED_TABLE
from kquery_spark.spark_bridge.python.pickled_arguments import PickledArguments
from kquery_spark.spark_bridge.python.pickled_results import PickledResults
from kquery_spark.spark_bridge.python.pickled_values import Pickling
from kquery_spark.spark_bridge.python.results import checked_results
from kquery_spark.spark_bridge.python.table_call import TableCall, read_table_function

_FLUSHED_ROWS = 4096


@dataclass(frozen=True)
class TableEvaluation:
    """A call of a table function; a callable, pickled into the plan.

    settings: the settings that Spark's JVM sends to workers. arguments: the schema in Spark's types. results: the schema in
    the engine's types. pickling: how functions without Arrow pickle values. by_row: the results of a row depend on no other
    row, and come with its position among all rows. Otherwise one instance of the function sees all rows of a partition, and
    results have no positions.
    """

    call: TableCall
    settings: Mapping[str, str]
    arguments: pa.Schema
    results: pa.Schema
    pickling: Pickling
    by_row: bool

    def __call__(self, arguments: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the results for batches of arguments; if ``by_row``, the first column is the position of the input row."""
        return with_query_errors(arguments, self._evaluate)

    def _evaluate(self, arguments: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import worker

        schema = json.dumps(spark_schema(self.arguments))
        function, inputs, dump = read_table_function(worker, self.call, self.settings, schema)
        given = _CountingBatches(as_function_sees(batch, self.arguments) for batch in arguments)
        if self.call.eval_type == PICKLED_TABLE:
            pickled = PickledArguments(self.pickling)
            outputs = _Outputs(self._converted, self.by_row)
            for rows in function(0, (row for batch in given for row in pickled.rows(batch))):
                yield from outputs.add(rows, len(rows))
        else:
            outputs = _Outputs(_concatenate, self.by_row)
            for output in function(0, (item for batch in given for item in inputs.copied(batch))):
                for batch in dump(output):
                    yield from outputs.add(checked_results(fields_of(batch), self.results), batch.num_rows)
        last = list(outputs.flush())
        self._check(outputs, given)
        yield from last

    def _converted(self, outputs: Sequence[Iterable[Any]]) -> pa.RecordBatch:
        """Convert outputs that are rows of Python values, which Spark pickles."""
        width, made = len(self.results), PickledResults(self.pickling)
        rows = [(None,) * width if row is None else row for rows in outputs for row in rows]
        if any(type(row) is not tuple or len(row) != width for row in rows):
            raise KQueryError("only Spark can convert rows with more or fewer values than columns")
        columns = zip(*rows, strict=True)
        arrays = [made.array(c, field.type) for c, field in zip(columns, self.results, strict=True)]
        return checked_results(_batch(arrays), self.results)

    def _check(self, outputs: _Outputs, given: _CountingBatches) -> None:
        """Raise KQueryError if Spark's result depends on how it distributes rows to tasks, or is an error."""
        if self.by_row and (outputs.count != given.rows or next(given, None) is not None):
            raise KQueryError("only Spark knows which rows a table function skips")
        if not given.rows and outputs.rows:
            raise KQueryError("rows that a table function returns without an input row are not supported")


class _CountingBatches(Iterator[pa.RecordBatch]):
    """An iterator of batches that counts the rows read so far."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0

    def __next__(self) -> pa.RecordBatch:
        batch = next(self._batches)
        self.rows += batch.num_rows
        return batch


class _Outputs:
    """Combines outputs, one for each input row, into larger batches.

    count: the number of outputs. rows: the number of their rows. together: combines outputs with rows into one batch.
    """

    def __init__(self, together: Callable[[list[Any]], pa.RecordBatch], with_places: bool) -> None:
        self._together = together
        self._with_places = with_places
        self._held: list[Any] = []
        self._sizes: list[int] = []
        self._held_rows = 0
        self.count = 0
        self.rows = 0

    def add(self, output: Any, rows: int) -> Iterator[pa.RecordBatch]:
        """Add the next output, which has ``rows`` rows; return a batch once there are enough."""
        self._held.append(output)
        self._sizes.append(rows)
        self._held_rows += rows
        self.count += 1
        self.rows += rows
        if max(self._held_rows, len(self._held)) >= _FLUSHED_ROWS:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining rows."""
        held, sizes = self._held, self._sizes
        any_rows = self._held_rows > 0
        self._held, self._sizes, self._held_rows = [], [], 0
        if not any_rows:
            return
        batch = self._together(held)
        if self._with_places:
            places = np.repeat(np.arange(self.count - len(held), self.count), sizes)
            batch = _batch([pa.array(places), *batch.columns])
        yield batch


def _concatenate(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches).combine_chunks()
    return _batch([column.chunk(0) for column in table.columns])


def _batch(columns: list[pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(columns, names=[f"_{i}" for i in range(len(columns))])
