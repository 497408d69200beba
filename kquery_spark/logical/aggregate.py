"""Group rows and aggregate each group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.expr import AggregateCall, Expr, Named
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan


@dataclass(frozen=True)
class Aggregate(UnaryPlan):
    """Output: the keys, then the aggregates. Without keys there is always exactly one row.

    ``keys`` without ``aggregates`` is DISTINCT.
    """

    child: LogicalPlan
    keys: tuple[Named, ...]
    aggregates: tuple[Named, ...]

    def derive_schema(self) -> pa.Schema:
        """See LogicalPlan."""
        return pa.schema([e.field for e in (*self.keys, *self.aggregates)])

    def validate(self) -> None:
        """See LogicalPlan."""
        super().validate()
        for named in self.aggregates:
            if not isinstance(named.expr, AggregateCall):
                raise PlanError(f"{named.expr} is not an aggregate function")

    @property
    def calls(self) -> tuple[AggregateCall, ...]:
        """The aggregate calls, in output order."""
        return tuple(n.expr for n in self.aggregates if isinstance(n.expr, AggregateCall))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """See LogicalPlan."""
        return tuple(e.expr for e in (*self.keys, *self.aggregates))

    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        """See LogicalPlan."""
        return Aggregate(
            self.child,
            tuple(Named(rule(k.expr), k.name) for k in self.keys),
            tuple(Named(rule(a.expr), a.name) for a in self.aggregates),
        )

    def label(self) -> str:
        """See LogicalPlan."""
        keys = ", ".join(map(str, self.keys))
        return f"Aggregate: groupExpr=[{keys}], aggregateExpr=[{', '.join(map(str, self.aggregates))}]"
