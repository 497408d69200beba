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
from kquery_spark.physical.spill import SpillDirectory, SpillFile
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
            yield from self._all(task)
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

    def _all(self, task: TaskContext) -> Iterator[Batch]:
        """Everything in order; past the memory budget as sorted runs on disk, merged."""
        with SpillDirectory(task.metrics_of(self)) as spill:
            held: list[Batch] = []
            size = 0
            runs: list[SpillFile] = []
            for batch in self.child.run(task):
                held.append(batch)
                size += batch.nbytes
                if size > task.config.memory_bytes and batch.columns:
                    runs.append(self._spilled(held, spill, task))
                    held, size = [], 0
            if not runs:
                yield from _cut(self._ordered(concat(self.schema, held)), task.config.batch_rows)
                return
            if held:
                runs.append(self._spilled(held, spill, task))
            yield from self._merged([run.read() for run in runs])

    def _spilled(self, batches: list[Batch], spill: SpillDirectory, task: TaskContext) -> SpillFile:
        run = spill.file(self.schema)
        ordered = self._ordered(concat(self.schema, batches))
        for piece in _cut(ordered, max(1024, task.config.batch_rows // 8)):
            run.append(piece)
        run.close()
        return run

    def _merged(self, runs: list[Iterator[Batch]]) -> Iterator[Batch]:
        """Merge sorted runs piece by piece: what sorts before the first run to run dry can go out."""
        heads = [Batch.empty(self.schema) for _ in runs]
        live = list(range(len(runs)))
        while True:
            for i in list(live):
                if not heads[i].num_rows:
                    piece = next(runs[i], None)
                    if piece is None:
                        live.remove(i)
                    else:
                        heads[i] = piece
            sizes = np.array([h.num_rows for h in heads], np.int64)
            if not sizes.sum():
                return
            pool = concat(self.schema, [h for h in heads if h.num_rows])
            order = sort_order(pool, self.keys)
            place = np.empty(pool.num_rows, np.int64)
            place[order] = np.arange(pool.num_rows)
            ends = np.cumsum(sizes)
            cut = min((int(place[ends[i] - 1]) for i in live), default=pool.num_rows - 1)
            yield pool.take(pa.array(order[: cut + 1]))
            for i, end in enumerate(ends.tolist()):
                gone = int((place[end - int(sizes[i]) : end] <= cut).sum())
                heads[i] = heads[i].slice(gone)

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
