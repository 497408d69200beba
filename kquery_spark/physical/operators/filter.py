"""FilterExec: selects rows by the cheapest of five methods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.expr.properties import is_pure
from kquery_spark.physical.dynamic_filters.runtime_filter import RuntimeFilter
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import Metrics, PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.types.batch import Batch, run_in_parts
from kquery_spark.types.vector import Vector, true_flags

_MAX_INDEXED_SELECTIVITY = 0.2


@dataclass(frozen=True)
class FilterExec(UnaryExec):
    """Outputs the rows for which the condition is TRUE."""

    child: PhysicalPlan
    condition: Expr

    @override
    def accept_filter(self, task: TaskContext, runtime_filter: RuntimeFilter) -> None:
        """Pass the filter to the child. If the condition can raise, it has to see all rows, so the filter is ignored."""
        if is_pure(self.condition):
            self.child.accept_filter(task, runtime_filter.through_filter())

    @override
    def clusters_by(self, keys: frozenset[Expr]) -> bool:
        return self.child.clusters_by(keys)

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        program = Program([self.condition], self.child.schema)
        metrics = task.metrics_of(self)
        for batch in self.child.run(task):
            for part, vectors in run_in_parts(program.run, batch, repeatable=program.is_deterministic):
                yield keep(part, vectors[0], metrics)

    @override
    def label(self) -> str:
        return f"FilterExec: {self.condition}"


def keep(batch: Batch, condition: Vector, metrics: Metrics | None = None) -> Batch:
    """Return the rows for which the condition is TRUE.

    The methods: no rows or all rows (nothing is copied), indices for less than 20 % of the rows, a slice if the rows are
    consecutive, otherwise a mask. A slice keeps the whole batch in memory, so a few rows are copied even if consecutive.
    metrics: counts the batches per method (``filter_none``, ...).
    """
    if condition.is_scalar:
        true = condition.data.is_valid and condition.data.as_py()
        count = batch.num_rows if true else 0
    else:
        count = condition.data.true_count
    way, passing = "all", batch
    if count == 0:
        way, passing = "none", batch.slice(0, 0)
    elif count < batch.num_rows:
        way, passing = _selected_rows(batch, condition.data, count)
    if metrics is not None:
        metrics.add(f"filter_{way}", 1)
    return passing


def _selected_rows(batch: Batch, mask: pa.Array, count: int) -> tuple[str, Batch]:
    if count < batch.num_rows * _MAX_INDEXED_SELECTIVITY:
        return "indices", batch.take(pa.array(np.flatnonzero(true_flags(mask))))
    first = pc.index(mask, True).as_py()
    if mask.slice(first, count).true_count == count:
        return "slice", batch.slice(first, count)
    return "mask", batch.filter(mask)
