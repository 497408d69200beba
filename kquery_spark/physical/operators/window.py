"""WindowExec: functions over windows; each partition's rows come out together, in the window's order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from kquery_spark.expr import Expr, Named, SortKey, WindowCall
from kquery_spark.logical.window import over_text
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.spill import in_partitions
from kquery_spark.physical.windows import Windowed, arrange
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Vector


@dataclass(frozen=True)
class WindowExec(PhysicalPlan):
    """See ``logical.Window``; a partition's rows must all be in this task."""

    child: PhysicalPlan
    calls: tuple[Named, ...]
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]

    @property
    def schema(self) -> pa.Schema:
        """See PhysicalPlan."""
        return pa.schema([*self.child.schema, *(c.field for c in self.calls)])

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """See PhysicalPlan."""
        return (self.child,)

    def with_children(self, children: Sequence[PhysicalPlan]) -> PhysicalPlan:
        """See PhysicalPlan."""
        return replace(self, child=children[0])

    def execute(self, task: TaskContext) -> Iterator[Batch]:
        """See PhysicalPlan."""
        program = Program(list(self.partition), self.child.schema)
        parts = in_partitions(
            self.child.run(task),
            self.child.schema,
            program.run if self.partition else None,
            task.config.memory_bytes,
            task.metrics_of(self),
        )
        for part in parts:
            whole = self.compute(part)
            for start in range(0, whole.num_rows, task.config.batch_rows):
                yield whole.slice(start, task.config.batch_rows)

    def compute(self, batch: Batch) -> Batch:
        """The output for all rows of some partitions."""
        if not batch.num_rows:
            return Batch.empty(self.schema)
        exprs = [*self.partition, *(k.expr for k in self.order)]
        vectors = Program(exprs, batch.schema).run(batch)
        n, parts = batch.num_rows, len(self.partition)
        partition = [Vector(v.dtype, v.physical(n)) for v in vectors[:parts]]
        rows, segments = arrange(partition, list(zip(self.order, vectors[parts:], strict=True)), n)
        arranged = batch.take(pa.array(rows))
        program = Program(
            [e for c in self.calls for e in (*c.expr.children, *(k.expr for k in self.order))], batch.schema
        )
        values = iter(program.run(arranged))
        columns = list(arranged.columns)
        windowed: Windowed | None = None
        for named in self.calls:
            call = named.expr
            assert isinstance(call, WindowCall)
            args = [next(values) for _ in call.args]
            keys = [(k, _filled(next(values), n)) for k in self.order]
            windowed = windowed or Windowed(segments, keys)
            columns.append(windowed.compute(call, args).physical(n))
        return Batch(self.schema, tuple(columns), n)

    def label(self) -> str:
        """See PhysicalPlan."""
        return f"WindowExec: {over_text(self.calls, self.partition, self.order)}"


def _filled(vector: Vector, n: int) -> Vector:
    return Vector(vector.dtype, vector.physical(n))
