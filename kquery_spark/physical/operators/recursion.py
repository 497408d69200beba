"""RecursionExec: runs a plan again and again over its own last rows, and LastRoundExec, which gives these rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import ExecutionError
from kquery_spark.logical.recursion import RoundLimits
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.spill import SpillDirectory, SpillFile
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class LastRoundExec(PhysicalPlan):
    """The rows of the round before, which RecursionExec gives the task as the input ``key``."""

    key: str
    columns: pa.Schema

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.columns

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        for batch in task.inputs[self.key]():
            yield Batch(self.columns, batch.columns, batch.num_rows)

    @override
    def label(self) -> str:
        return f"LastRoundExec: {self.key}"


@dataclass(frozen=True)
class RecursionExec(PhysicalPlan):
    """The anchor's rows and those of every round of ``step``. Runs in one task.

    No row comes out before the last round, so that an operator above that takes only the first rows hides no error, as it
    hides none in Spark. Rows of earlier rounds that pass the memory budget wait on disk.
    """

    anchor: PhysicalPlan
    step: PhysicalPlan
    key: str
    limits: RoundLimits
    output: pa.Schema

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.output

    @property
    @override
    def children(self) -> tuple[PhysicalPlan, ...]:
        return (self.anchor, self.step)

    @override
    def with_children(self, children: Sequence[PhysicalPlan]) -> PhysicalPlan:
        return replace(self, anchor=children[0], step=children[1])

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        with SpillDirectory(task.metrics_of(self)) as spill:
            finished = _HeldRows(spill, self.output, task.config.memory_bytes)
            enough, rows, rounds = self.limits.enough_rows, 0, 1
            last = self._first(self.anchor.run(task), enough)
            while last:
                if self.limits.max_rounds is not None and rounds > self.limits.max_rounds:
                    raise _too_many("LEVEL", self.limits.max_rounds)
                rows += sum(batch.num_rows for batch in last)
                finished.add(last)
                if enough is not None and rows >= enough:
                    break
                if enough is None and self.limits.max_rows is not None and rows >= self.limits.max_rows:
                    raise _too_many("ROW", self.limits.max_rows)
                last = self._first(self._step(task, last), None if enough is None else enough - rows)
                rounds += 1
            task.metrics_of(self).add("rounds", rounds)
            yield from finished

    def _step(self, task: TaskContext, last: list[Batch]) -> Iterator[Batch]:
        """The rows of a round. What filters the step's joins had for its scans were those of another round's rows."""
        inputs = {**task.inputs, self.key: lambda: iter(last)}
        return self.step.run(replace(task, inputs=inputs, runtime_filters={}))

    def _first(self, batches: Iterable[Batch], count: int | None) -> list[Batch]:
        """At most ``count`` rows (None: all), under the names of the output."""
        taken: list[Batch] = []
        for batch in batches:
            kept = batch if count is None else batch.slice(0, count)
            taken.append(Batch(self.output, kept.columns, kept.num_rows))
            if count is not None:
                count -= kept.num_rows
                if count <= 0:
                    break
        return taken


class _HeldRows:
    """Rows in the order in which they were added, from a number of bytes on in a file."""

    def __init__(self, spill: SpillDirectory, schema: pa.Schema, memory_bytes: int) -> None:
        self._spill = spill
        self._schema = schema
        self._memory_bytes = memory_bytes
        self._file: SpillFile | None = None
        self._batches: list[Batch] = []
        self._nbytes = 0

    def add(self, batches: list[Batch]) -> None:
        self._batches += batches
        self._nbytes += sum(batch.nbytes for batch in batches)
        if self._nbytes > self._memory_bytes:
            self._file = self._file or self._spill.file(self._schema)
            for batch in self._batches:
                self._file.append(batch)
            self._batches, self._nbytes = [], 0

    def __iter__(self) -> Iterator[Batch]:
        if self._file is not None:
            yield from self._file.read()
        yield from self._batches


def _too_many(what: str, limit: int) -> ExecutionError:
    return ExecutionError(
        f"RECURSION_{what}_LIMIT_EXCEEDED",
        f"Recursion {what.lower()} limit {limit} reached but query has not exhausted, try increasing it.",
    )
