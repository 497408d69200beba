"""SortExec: order all rows, or with a limit keep only the top ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from kquery_spark.expr import SortKey
from kquery_spark.physical.external_sort import in_order, sorted_batches
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.spill import SpillDirectory
from kquery_spark.types.batch import Batch, concat


@dataclass(frozen=True)
class SortExec(PhysicalPlan):
    """All rows in order; ``limit`` makes it a top-k that holds few more than k rows."""

    child: PhysicalPlan
    keys: tuple[SortKey, ...]
    limit: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """See PhysicalPlan."""
        return self.child.schema

    @property
    def children(self) -> tuple[PhysicalPlan, ...]:
        """See PhysicalPlan."""
        return (self.child,)

    def with_children(self, children: Sequence[PhysicalPlan]) -> PhysicalPlan:
        """See PhysicalPlan."""
        return replace(self, child=children[0])

    def execute(self, task: TaskContext) -> Iterator[Batch]:
        """See PhysicalPlan."""
        if self.limit is None:
            with SpillDirectory(task.metrics_of(self)) as spill:
                yield from sorted_batches(self.child.run(task), self.schema, self.keys, task.config, spill)
            return
        best: list[Batch] = []
        size = 0
        for batch in self.child.run(task):
            best.append(self._top(batch) if batch.num_rows > 4 * self.limit else batch)
            size += best[-1].num_rows
            if size > max(4 * self.limit, 65536):
                best = [self._top(concat(self.schema, best))]
                size = best[0].num_rows
        if best:
            yield self._top(concat(self.schema, best))

    def _top(self, batch: Batch) -> Batch:
        return in_order(batch, self.keys, self.limit)

    def label(self) -> str:
        """See PhysicalPlan."""
        limit = "" if self.limit is None else f", limit={self.limit}"
        return f"SortExec: {', '.join(map(str, self.keys))}{limit}"
