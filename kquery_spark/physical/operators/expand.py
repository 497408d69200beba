"""ExpandExec: outputs each row several times, with the values of different projections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.types.batch import Batch, coalesced, from_vectors

# The minimum rows of a batch, because partial aggregation needs many rows of the same projection.
_MIN_BATCH_ROWS = 2 * 128 * 1024


@dataclass(frozen=True)
class ExpandExec(UnaryExec):
    """Implements ``logical.Expand``. Outputs each batch once per projection. Columns that do not change are not copied."""

    child: PhysicalPlan
    projections: tuple[tuple[Expr, ...], ...]
    output: pa.Schema

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.output

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        width = len(self.output)
        program = Program([e for p in self.projections for e in p], self.child.schema)
        for batch in coalesced(self.child.run(task), _MIN_BATCH_ROWS):
            vectors = program.run(batch)
            for i in range(len(self.projections)):
                yield from_vectors(self.output, vectors[i * width : (i + 1) * width], batch.num_rows)

    @override
    def label(self) -> str:
        rows = "; ".join(", ".join(map(str, p)) for p in self.projections)
        return f"ExpandExec: [{', '.join(self.output.names)}] = {rows}"
