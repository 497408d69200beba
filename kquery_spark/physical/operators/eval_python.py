"""EvalPythonExec: batches of arguments to Python functions of Spark's users, and their results beside the input."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, cast

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr
from kquery_spark.functions.user import unpickled
from kquery_spark.logical.eval_python import calls_text
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.types.batch import Batch, concat, cut
from kquery_spark.types.vector import from_arrow


class Evaluation(Protocol):
    """The pickled code of an EvalPython: calls the functions in one of Spark's tasks."""

    def __call__(self, arguments: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results for all arguments, in their order; batches may end elsewhere."""


@dataclass(frozen=True)
class EvalPythonExec(UnaryExec):
    """See ``logical.EvalPython``; ``kept`` child columns come first in ``output``, the results last."""

    child: PhysicalPlan
    args: tuple[Expr, ...]
    calls: tuple[str, ...]
    batch_rows: int
    kept: tuple[str, ...]
    output: pa.Schema
    code: bytes = field(repr=False)

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.output

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        rows = _full_batches(self.child.run(task), self.batch_rows)
        first = next(rows, None)
        if first is None:  # a function is not called for a task without rows
            return
        evaluate = cast(Evaluation, unpickled(self.code))
        waiting = _Waiting([self.child.schema.get_field_index(name) for name in self.kept])
        types = self.output.types[len(self.kept) :]
        for results in evaluate(self._arguments(first, rows, waiting)):
            columns = [from_arrow(dtype, c).data for dtype, c in zip(types, results.columns, strict=True)]
            start = 0
            for batch in waiting.taken(results.num_rows):
                piece = (column.slice(start, batch.num_rows) for column in columns)
                yield Batch(self.output, (*batch.columns, *piece), batch.num_rows)
                start += batch.num_rows
        if waiting.num_rows:
            raise PlanError(f"Python functions gave no results for the last {waiting.num_rows} rows")

    def _arguments(self, first: Batch, rest: Iterator[Batch], waiting: _Waiting) -> Iterator[pa.RecordBatch]:
        """The arguments of all rows, which wait for their results from then on."""
        program = Program(self.args, self.child.schema)
        names = [f"_{i}" for i in range(len(self.args))]
        batch: Batch | None = first
        while batch is not None:
            waiting.add(batch)
            n = batch.num_rows
            if names:
                yield pa.RecordBatch.from_arrays([v.array(n) for v in program.run(batch)], names=names)
            else:
                yield pa.RecordBatch.from_struct_array(pa.array([{}] * n, pa.struct([])))
            batch = next(rest, None)

    @override
    def label(self) -> str:
        return f"EvalPythonExec: {calls_text(self.calls, self.output.names[len(self.kept) :])}"


class _Waiting:
    """Rows that wait for their results, narrowed to the columns at ``kept``."""

    def __init__(self, kept: list[int]) -> None:
        self._kept = kept
        self._batches: deque[Batch] = deque()
        self.num_rows = 0

    def add(self, batch: Batch) -> None:
        """Rows at the end."""
        self._batches.append(batch.select(self._kept))
        self.num_rows += batch.num_rows

    def taken(self, rows: int) -> Iterator[Batch]:
        """The first so many rows, which wait no longer."""
        if rows > self.num_rows:
            raise PlanError(f"Python functions gave {rows} results for {self.num_rows} rows")
        self.num_rows -= rows
        while rows:
            batch = self._batches.popleft()
            if batch.num_rows > rows:
                self._batches.appendleft(batch.slice(rows))
                batch = batch.slice(0, rows)
            rows -= batch.num_rows
            yield batch


def _full_batches(batches: Iterator[Batch], rows: int) -> Iterator[Batch]:
    """All rows in batches of so many, but the last, as Spark hands them to Python (0: as they come)."""
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
