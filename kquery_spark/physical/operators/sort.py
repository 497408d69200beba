"""SortExec: sorts all rows, or, with a limit, returns only the first ones (top-k)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from typing_extensions import override

from kquery_spark.expr import Expr, SortKey
from kquery_spark.expr.properties import is_pure
from kquery_spark.physical.dynamic_filters.runtime_filter import key_names
from kquery_spark.physical.dynamic_filters.top_k import FirstRowsFilter
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec, clustered_keys
from kquery_spark.physical.sorting.external_sort import sort_batch, sorted_batches
from kquery_spark.physical.spill import SpillDirectory
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch, concat, drain, max_buffered_bytes, trim_dictionaries


@dataclass(frozen=True)
class SortExec(UnaryExec):
    """Outputs all rows sorted by ``keys``. With ``limit``, it is a top-k.

    For a limit of k, the top-k collects batches, sorts them when they have more than 4 * k rows (at least 65,536), and keeps
    the first k. So each sort is for many new rows. The first sort happens as soon as there are k rows, because the dynamic
    filter needs a bound. Batches that together exceed half of the memory budget are sorted earlier. If the first k rows
    alone exceed a quarter of it, they and all further rows are sorted externally.
    """

    child: PhysicalPlan
    keys: tuple[SortKey, ...]
    limit: int | None = None

    @override
    def clusters_by(self, keys: frozenset[Expr]) -> bool:
        return keys in clustered_keys((), [k.expr for k in self.keys])

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        if self.limit is None:
            with SpillDirectory(task.metrics_of(self)) as spill:
                yield from sorted_batches(self.child.run(task), self.schema, self.keys, task.config, spill)
            return
        first_rows = self._top_k_filter()
        if first_rows is not None:
            self.child.accept_filter(task, first_rows)
        best: list[Batch] = []
        size = nbytes = 0
        has_learned = first_rows is None
        max_bytes = max_buffered_bytes(self.schema, task.config.memory_bytes) // 2
        source = self.child.run(task)
        for batch in source:
            best.append(self._top(batch, first_rows) if batch.num_rows > 4 * self.limit else batch)
            size += best[-1].num_rows
            nbytes += best[-1].nbytes
            # The filter learns the k-th row as soon as there are k rows. It learns nothing from keys such as binary strings.
            is_large = nbytes > max_bytes
            if size > max(4 * self.limit, 65536) or (not has_learned and size >= self.limit) or is_large:
                has_learned = True
                best = [self._top(concat(self.schema, best), first_rows)]
                size, nbytes = best[0].num_rows, best[0].nbytes
                if is_large and 2 * nbytes > max_bytes:
                    yield from self._top_externally(chain(drain(best), source), task)
                    return
        if best:
            yield self._top(concat(self.schema, best))

    def _top_externally(self, source: Iterator[Batch], task: TaskContext) -> Iterator[Batch]:
        """Return the first k rows by an external sort of all rows."""
        assert self.limit is not None
        missing = self.limit
        with SpillDirectory(task.metrics_of(self)) as spill:
            for batch in sorted_batches(source, self.schema, self.keys, task.config, spill):
                yield batch.slice(0, missing)
                missing -= min(missing, batch.num_rows)
                if not missing:
                    return

    def _top_k_filter(self) -> FirstRowsFilter | None:
        """Return the dynamic filter of a top-k; None unless the first sort key is a column."""
        key = self.keys[0]
        names = key_names([key.expr])
        if names is None or not self.limit or not all(is_pure(k.expr) for k in self.keys):
            return None
        ties = len(self.keys) > 1 or key.expr.dtype == t.STRING
        return FirstRowsFilter(names, key.ascending, key.nulls_first, ties, self.limit)

    def _top(self, batch: Batch, first_rows: FirstRowsFilter | None = None) -> Batch:
        """Return the first k rows of a batch. The dynamic filter learns from the last of them."""
        top = trim_dictionaries(sort_batch(batch, self.keys, self.limit))
        if first_rows is not None and top.num_rows == self.limit:
            last = top.slice(self.limit - 1, 1)
            first_rows.learn(last.vector(last.schema.get_field_index(first_rows.columns[0])))
        return top

    @override
    def label(self) -> str:
        limit = "" if self.limit is None else f", limit={self.limit}"
        return f"SortExec: {', '.join(map(str, self.keys))}{limit}"
