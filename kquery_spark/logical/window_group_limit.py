"""Keep the first rows of each group, ahead of a window function whose result is filtered."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, SortKey, columns_of
from kquery_spark.functions.windows import window_function
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan, is_condition_on, names_of_columns


@dataclass(frozen=True)
class WindowGroupLimit(UnaryPlan):
    """Rows whose ``function`` (row_number, rank or dense_rank) over the window is at most ``limit``."""

    child: LogicalPlan
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    function: str
    limit: int

    carries_columns: ClassVar[bool] = True

    def derive_schema(self) -> pa.Schema:
        """See LogicalPlan."""
        return self.child.schema

    def validate(self) -> None:
        """See LogicalPlan."""
        super().validate()
        entry = window_function(self.function)
        if entry is None or not entry.cuts_groups:
            raise PlanError(f"{self.function} does not rank rows")
        if not self.order or self.limit < 0:
            raise PlanError("a limit by rank needs an order and a limit that is not negative")

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """See LogicalPlan."""
        return (*self.partition, *(k.expr for k in self.order))

    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        """See LogicalPlan."""
        return replace(
            self,
            partition=tuple(rule(p) for p in self.partition),
            order=tuple(replace(k, expr=rule(k.expr)) for k in self.order),
        )

    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        """See LogicalPlan."""
        return (needed | columns_of(*self.expressions),)

    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """See LogicalPlan; whole groups go or stay."""
        return (predicate,) if is_condition_on(predicate, names_of_columns(self.partition)) else None

    def label(self) -> str:
        """See LogicalPlan."""
        return (
            f"WindowGroupLimit: {self.function} <= {self.limit}, "
            f"partition=[{', '.join(map(str, self.partition))}], order=[{', '.join(map(str, self.order))}]"
        )
