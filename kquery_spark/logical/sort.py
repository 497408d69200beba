"""Order rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from kquery_spark.expr import Expr, SortKey
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan


@dataclass(frozen=True)
class Sort(UnaryPlan):
    """All rows in the order of the keys."""

    child: LogicalPlan
    keys: tuple[SortKey, ...]

    def derive_schema(self) -> pa.Schema:
        """See LogicalPlan."""
        return self.child.schema

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """See LogicalPlan."""
        return tuple(k.expr for k in self.keys)

    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        """See LogicalPlan."""
        return Sort(self.child, tuple(replace(k, expr=rule(k.expr)) for k in self.keys))

    def label(self) -> str:
        """See LogicalPlan."""
        return f"Sort: {', '.join(map(str, self.keys))}"
