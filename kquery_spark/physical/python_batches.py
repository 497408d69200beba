"""Conversions of batches to the arguments of Python UDFs and from their results, shared by the operators that call them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr
from kquery_spark.physical.expr import Program
from kquery_spark.types.batch import Batch, concat, cut
from kquery_spark.types.vector import Data, from_arrow

T_contra = TypeVar("T_contra", contravariant=True)


class PythonEvaluation(Protocol[T_contra]):
    """The function in the pickled code of a node. It calls the Python UDFs of the node in one task.

    The type parameter is the argument of one call: a batch, or a group as an iterator of batches.
    """

    def __call__(self, arguments: Iterator[T_contra]) -> Iterator[pa.RecordBatch]:
        """Yield the results of all arguments, in order. Result batches can have other boundaries than the arguments."""


class Arguments:
    """Computes the arguments of functions, as the columns ``_0``, ``_1``, ..."""

    def __init__(self, args: Sequence[Expr], schema: pa.Schema) -> None:
        self._program = Program(args, schema)
        self._names = [f"_{i}" for i in range(len(args))]

    def to_arrow(self, batch: Batch) -> pa.RecordBatch:
        """Return the arguments for the rows of a batch."""
        n = batch.num_rows
        if not self._names:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * n, pa.struct([])))
        return pa.RecordBatch.from_arrays([v.array(n) for v in self._program.run(batch)], names=self._names)


class PendingRows:
    """A queue of input rows that wait for their results, one result per row.

    Result batches can have other boundaries than input batches, so rows are matched by their order. column_indices:
    the columns that the output needs; all others are dropped.
    """

    def __init__(self, column_indices: list[int]) -> None:
        self._column_indices = column_indices
        self._batches: deque[Batch] = deque()
        self.num_rows = 0

    def add(self, batch: Batch) -> None:
        """Append rows."""
        self._batches.append(batch.select(self._column_indices))
        self.num_rows += batch.num_rows

    def combine_with(self, results: pa.RecordBatch, output: pa.Schema) -> Iterator[Batch]:
        """Remove one row per result from the front of the queue, and yield these rows with the result columns appended."""
        columns = result_columns(results, output.types[len(self._column_indices) :])
        start = 0
        for batch in self._pop_rows(results.num_rows):
            piece = (column.slice(start, batch.num_rows) for column in columns)
            yield Batch(output, (*batch.columns, *piece), batch.num_rows)
            start += batch.num_rows

    def check_none_left(self) -> None:
        """Raise PlanError if rows are still pending."""
        if self.num_rows:
            raise PlanError(f"Python functions returned no results for the last {self.num_rows} rows")

    def _pop_rows(self, rows: int) -> Iterator[Batch]:
        if rows > self.num_rows:
            raise PlanError(f"Python functions returned {rows} results for {self.num_rows} rows")
        self.num_rows -= rows
        while rows:
            batch = self._batches.popleft()
            if batch.num_rows > rows:
                self._batches.appendleft(batch.slice(rows))
                batch = batch.slice(0, rows)
            rows -= batch.num_rows
            yield batch


def result_columns(results: pa.RecordBatch, dtypes: Sequence[pa.DataType]) -> list[Data]:
    """Return the columns of results in the engine's physical form of these types."""
    return [from_arrow(dtype, c).data for dtype, c in zip(dtypes, results.columns, strict=True)]


def full_batches(batches: Iterator[Batch], rows: int) -> Iterator[Batch]:
    """Yield all rows in batches of ``rows`` rows (the last one can have fewer), as Spark sends them to Python.

    With 0 for ``rows``, the batches are passed on unchanged.
    """
    held: list[Batch] = []
    missing = rows
    for batch in batches:
        if not rows:
            yield batch
            continue
        if held or batch.num_rows < rows:
            head = batch.slice(0, missing)
            held.append(head)
            missing -= head.num_rows
            if missing:
                continue
            yield concat(batch.schema, held)
            held, missing = [], rows
            batch = batch.slice(head.num_rows)
        whole = batch.num_rows // rows * rows
        yield from cut(batch.slice(0, whole), rows)
        if whole < batch.num_rows:
            held = [batch.slice(whole)]
            missing = rows - held[0].num_rows
    if held:
        yield concat(held[0].schema, held)


def coalesced(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of at least ``rows`` rows (the last one can have fewer)."""
    held: list[pa.RecordBatch] = []
    held_rows = 0
    for batch in batches:
        held.append(batch)
        held_rows += batch.num_rows
        if held_rows >= rows:
            yield from combined_batches(held)
            held, held_rows = [], 0
    if held_rows:
        yield from combined_batches(held)


def combined_batches(batches: Sequence[pa.RecordBatch], rows: int = 0) -> list[pa.RecordBatch]:
    """Combine batches into one; with ``rows``, into full batches of that size (the last one can have fewer rows)."""
    if len(batches) == 1 and (not rows or batches[0].num_rows <= rows):
        return list(batches)
    table = pa.Table.from_batches(batches).combine_chunks()
    return list(table.to_batches(max_chunksize=rows or None))
