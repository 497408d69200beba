"""RecursionExec: runs a recursive CTE in rounds. LastRoundExec reads the rows of the previous round (the working table)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import ExecutionError
from kquery_spark.logical.recursion import RecursionLimits
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.spill import SpillDirectory, SpillFile
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class LastRoundExec(PhysicalPlan):
    """Reads the rows of the previous round, which RecursionExec provides as the task's input ``key``."""

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
    """Outputs the rows of the anchor and of each round of ``step``, until a round has no rows or a limit is reached.

    It runs in one task. No row is output before the last round has ended. So a limit above does not hide errors of later
    rounds, just as in Spark. The rows of finished rounds are spilled to disk if they exceed the memory budget.
    """

    anchor: PhysicalPlan
    step: PhysicalPlan
    key: str
    limits: RecursionLimits
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
            # ``last`` is the working table. ``enough`` ends the recursion early without an error, for a LIMIT above it;
            # the other limits raise one.
            enough, rows, rounds = self.limits.enough_rows, 0, 1
            last = self._first(self.anchor.run(task), enough)
            while last:
                if self.limits.max_rounds is not None and rounds > self.limits.max_rounds:
                    raise _limit_exceeded("LEVEL", self.limits.max_rounds)
                rows += sum(batch.num_rows for batch in last)
                finished.add(last)
                if enough is not None and rows >= enough:
                    break
                if enough is None and self.limits.max_rows is not None and rows >= self.limits.max_rows:
                    raise _limit_exceeded("ROW", self.limits.max_rows)
                last = self._first(self._step(task, last), None if enough is None else enough - rows)
                rounds += 1
            task.metrics_of(self).add("rounds", rounds)
            yield from finished

    def _step(self, task: TaskContext, last: list[Batch]) -> Iterator[Batch]:
        """Yield the rows of one round. It starts without dynamic filters: old ones have the previous round's build rows."""
        inputs = {**task.inputs, self.key: lambda: iter(last)}
        return self.step.run(replace(task, inputs=inputs, runtime_filters={}))

    def _first(self, batches: Iterable[Batch], count: int | None) -> list[Batch]:
        """Return at most ``count`` rows (None: all), with the column names of the output."""
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
    """Holds rows in the order in which they were added. They are spilled to a file when they exceed ``memory_bytes``."""

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


def _limit_exceeded(what: str, limit: int) -> ExecutionError:
    return ExecutionError(
        f"RECURSION_{what}_LIMIT_EXCEEDED",
        f"Recursion {what.lower()} limit {limit} reached but query has not exhausted, try increasing it.",
    )
