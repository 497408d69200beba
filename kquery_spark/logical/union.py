"""All rows of several inputs."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, Named, substitute
from kquery_spark.logical.plan import LogicalPlan
from kquery_spark.logical.projection import Projection


@dataclass(frozen=True)
class Union(LogicalPlan):
    """UNION ALL by position; the names are the first input's."""

    inputs: tuple[LogicalPlan, ...]

    passes_rows_on: ClassVar[bool] = True

    @override
    def derive_schema(self) -> pa.Schema:
        fields = []
        for i, first in enumerate(self.inputs[0].schema):
            nullable = any(p.schema.field(i).nullable for p in self.inputs)
            fields.append(first.with_nullable(nullable))
        return pa.schema(fields)

    @override
    def validate(self) -> None:
        types = [p.schema.types for p in self.inputs]
        if any(other != types[0] for other in types[1:]):
            raise PlanError("the inputs of a union have different column types")

    @property
    @override
    def children(self) -> tuple[LogicalPlan, ...]:
        return self.inputs

    @override
    def with_children(self, children: Sequence[LogicalPlan]) -> LogicalPlan:
        return Union(tuple(children))

    @override
    def narrowed(self, needed: Set[str]) -> LogicalPlan:
        """Columns go by position, so each input gives exactly the needed ones."""
        positions = [i for i, name in enumerate(self.schema.names) if name in needed]
        if len(positions) == len(self.schema):
            return self
        return Union(tuple(_columns_at(one, positions) for one in self.inputs))

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        names = self.schema.names
        columns = [dict(zip(names, map(one.column, one.schema.names), strict=True)) for one in self.inputs]
        return tuple(substitute(predicate, own) for own in columns)

    @override
    def input_of(self, expr: Expr) -> None:
        """Rows come from every input."""
        return None

    @override
    def sees_order(self, order_is_seen: bool) -> bool:
        return order_is_seen

    @override
    def ignores_repeats(self, repeats_are_ignored: bool) -> tuple[bool, ...]:
        return (repeats_are_ignored,) * len(self.inputs)

    @override
    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        return sum(input_rows)


def _columns_at(plan: LogicalPlan, positions: Sequence[int]) -> Projection:
    names = plan.schema.names
    return Projection(plan, tuple(Named(plan.column(names[i]), names[i]) for i in positions))
