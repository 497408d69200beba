"""Concatenates the rows of several inputs."""

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
    """UNION ALL: matches columns by position; the output has the first input's names."""

    inputs: tuple[LogicalPlan, ...]

    is_row_wise: ClassVar[bool] = True

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
    def prune_columns(self, needed: Set[str]) -> LogicalPlan:
        """Columns are matched by position, so each input is projected to exactly the needed positions."""
        positions = [i for i, name in enumerate(self.schema.names) if name in needed]
        if len(positions) == len(self.schema):
            return self
        return Union(tuple(_columns_at(plan, positions) for plan in self.inputs))

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        names = self.schema.names
        columns = [dict(zip(names, map(plan.column, plan.schema.names), strict=True)) for plan in self.inputs]
        return tuple(substitute(predicate, input_columns) for input_columns in columns)

    @override
    def is_order_sensitive(self, order_matters: bool) -> bool:
        return order_matters

    @override
    def is_duplicate_insensitive(self, duplicates_are_irrelevant: bool) -> tuple[bool, ...]:
        return (duplicates_are_irrelevant,) * len(self.inputs)

    @override
    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        return sum(input_rows)


def _columns_at(plan: LogicalPlan, positions: Sequence[int]) -> Projection:
    names = plan.schema.names
    return Projection(plan, tuple(Named(plan.column(names[i]), names[i]) for i in positions))
