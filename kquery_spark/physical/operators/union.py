"""UnionExec: outputs its inputs one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.physical.operators.base import PhysicalPlan, TaskContext
from kquery_spark.types.batch import Batch


@dataclass(frozen=True)
class UnionExec(PhysicalPlan):
    """Outputs the rows of all inputs. Columns are matched by position and get the names of ``output``."""

    inputs: tuple[PhysicalPlan, ...]
    output: pa.Schema

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.output

    @property
    @override
    def children(self) -> tuple[PhysicalPlan, ...]:
        return self.inputs

    @override
    def with_children(self, children: Sequence[PhysicalPlan]) -> PhysicalPlan:
        return replace(self, inputs=tuple(children))

    @override
    def execute(self, task: TaskContext) -> Iterator[Batch]:
        for plan in self.inputs:
            for batch in plan.run(task):
                yield Batch(self.output, batch.columns, batch.num_rows)
