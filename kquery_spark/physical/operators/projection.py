"""ProjectionExec: computes columns. Plain columns are passed on without a copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, Named
from kquery_spark.expr.properties import is_pure
from kquery_spark.physical.dynamic_filters.runtime_filter import RuntimeFilter, key_names
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext, UnaryExec
from kquery_spark.types.batch import Batch, from_vectors, run_in_parts


@dataclass(frozen=True)
class ProjectionExec(UnaryExec):
    """Outputs one column per named expression."""

    child: PhysicalPlan
    exprs: tuple[Named, ...]

    @property
    @override
    def schema(self) -> pa.Schema:
        return pa.schema([e.field for e in self.exprs])

    @override
    def accept_filter(self, task: TaskContext, runtime_filter: RuntimeFilter) -> None:
        """Pass the filter to the child. If an expression can raise, it has to see all rows, so the filter is ignored."""
        sources = {e.name: e.expr for e in self.exprs}
        if not all(map(is_pure, sources.values())):
            return
        names = key_names([sources[c] for c in runtime_filter.columns])
        if names is not None:
            self.child.accept_filter(task, replace(runtime_filter, columns=names))
        else:
            for column_filter in runtime_filter.by_column():
                self.accept_filter(task, column_filter)

    @override
    def clusters_by(self, keys: frozenset[Expr]) -> bool:
        sources: dict[Expr, Expr] = {e.column: e.expr for e in self.exprs}
        return keys <= sources.keys() and self.child.clusters_by(frozenset(sources[k] for k in keys))

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        program = Program([e.expr for e in self.exprs], self.child.schema)
        schema = self.schema
        for batch in self.child.run(task):
            for part, vectors in run_in_parts(program.run, batch, repeatable=program.is_deterministic):
                yield from_vectors(schema, vectors, part.num_rows)

    @override
    def label(self) -> str:
        return f"ProjectionExec: {', '.join(map(str, self.exprs))}"
