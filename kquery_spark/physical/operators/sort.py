"""SortExec: order all rows, or with a limit keep only the top ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from kquery_spark.expr import SortKey
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.physical.ordering import key_columns, sort_rows
from kquery_spark.types.batch import Batch, concat
from kquery_spark.types.vector import Int64s, Vector


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
            whole = concat(self.schema, list(self.child.run(task)))
            yield from _cut(self._ordered(whole), task.config.batch_rows)
            return
        best: list[Batch] = []
        size = 0
        for batch in self.child.run(task):
            best.append(self._ordered(batch) if batch.num_rows > 4 * self.limit else batch)
            size += best[-1].num_rows
            if size > max(4 * self.limit, 65536):
                best = [self._ordered(concat(self.schema, best))]
                size = best[0].num_rows
        if best:
            yield self._ordered(concat(self.schema, best))

    def _ordered(self, batch: Batch) -> Batch:
        if batch.num_rows == 0:
            return batch
        rows = sort_order(batch, self.keys, self.limit)
        return batch.take(pa.array(rows))

    def label(self) -> str:
        """See PhysicalPlan."""
        limit = "" if self.limit is None else f", limit={self.limit}"
        return f"SortExec: {', '.join(map(str, self.keys))}{limit}"


def sort_order(batch: Batch, keys: Sequence[SortKey], limit: int | None = None) -> Int64s:
    """Row numbers of the batch in the order of the keys."""
    vectors = Program([k.expr for k in keys], batch.schema).run(batch)
    columns: list[Int64s] = []
    for key, vector in zip(keys, vectors, strict=True):
        if not vector.is_scalar:
            columns += key_columns(Vector(vector.dtype, vector.data), key.ascending, key.nulls_first)
    if not columns:
        return np.arange(batch.num_rows if limit is None else min(limit, batch.num_rows))
    return sort_rows(columns, limit)


def _cut(batch: Batch, rows: int) -> Iterator[Batch]:
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
