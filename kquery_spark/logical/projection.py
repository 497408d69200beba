"""Compute columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.expr import Column, Expr, Named
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan


@dataclass(frozen=True)
class Projection(UnaryPlan):
    """One output column per named expression."""

    child: LogicalPlan
    exprs: tuple[Named, ...]

    @property
    def only_drops(self) -> bool:
        """Whether each output column is an input column by its own name."""
        return all(isinstance(e.expr, Column) and e.expr.name == e.name for e in self.exprs)

    def derive_schema(self) -> pa.Schema:
        """See LogicalPlan."""
        return pa.schema([e.field for e in self.exprs])

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """See LogicalPlan."""
        return tuple(e.expr for e in self.exprs)

    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        """See LogicalPlan."""
        return Projection(self.child, tuple(Named(rule(e.expr), e.name) for e in self.exprs))

    def label(self) -> str:
        """See LogicalPlan."""
        return f"Projection: {', '.join(map(str, self.exprs))}"


def same_columns(plan: LogicalPlan, original: LogicalPlan) -> LogicalPlan:
    """The plan with just the columns of another one, in their order."""
    names = original.schema.names
    if plan.schema.names == names:
        return plan
    return Projection(plan, tuple(Named(plan.column(n), n) for n in names))


def with_output(plan: LogicalPlan, output: tuple[str, ...]) -> LogicalPlan:
    """The plan with exactly the columns asked for, in that order; a column asked for twice gets a second name."""
    if tuple(plan.schema.names) == output:
        return plan
    taken: set[str] = set()
    exprs = []
    for name in output:
        fresh, number = name, 1
        while fresh in taken:
            number += 1
            fresh = f"{name}_{number}"
        taken.add(fresh)
        exprs.append(Named(plan.column(name), fresh))
    return Projection(plan, tuple(exprs))
