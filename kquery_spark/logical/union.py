"""All rows of several inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.logical.plan import LogicalPlan


@dataclass(frozen=True)
class Union(LogicalPlan):
    """UNION ALL by position; the names are the first input's."""

    inputs: tuple[LogicalPlan, ...]

    def derive_schema(self) -> pa.Schema:
        """See LogicalPlan."""
        fields = []
        for i, first in enumerate(self.inputs[0].schema):
            nullable = any(p.schema.field(i).nullable for p in self.inputs)
            fields.append(first.with_nullable(nullable))
        return pa.schema(fields)

    def validate(self) -> None:
        """See LogicalPlan."""
        types = [p.schema.types for p in self.inputs]
        if any(other != types[0] for other in types[1:]):
            raise PlanError("the inputs of a union have different column types")

    @property
    def children(self) -> tuple[LogicalPlan, ...]:
        """See LogicalPlan."""
        return self.inputs

    def with_children(self, children: Sequence[LogicalPlan]) -> LogicalPlan:
        """See LogicalPlan."""
        return Union(tuple(children))
