"""Keeps the first rows of each group, below a ranking window function whose result is filtered.

For ``row_number() OVER (PARTITION BY k ORDER BY v) <= 3``, no group needs more than three rows to reach the window.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, SortKey, columns_of
from kquery_spark.functions.aggregate.windows import window_function
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan, is_condition_on, names_of_columns


@dataclass(frozen=True)
class WindowGroupLimit(UnaryPlan):
    """Keeps the rows whose ``function`` (row_number, rank or dense_rank) over the window is at most ``limit``."""

    child: LogicalPlan
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    function: str
    limit: int

    carries_columns: ClassVar[bool] = True

    @override
    def validate(self) -> None:
        super().validate()
        entry = window_function(self.function)
        if entry is None or not entry.supports_group_limit:
            raise PlanError(f"{self.function} is not a ranking function; use row_number, rank or dense_rank")
        if not self.order or self.limit < 0:
            raise PlanError("a limit by rank needs an ORDER BY and a limit that is not negative")

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return (*self.partition, *(k.expr for k in self.order))

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return replace(
            self,
            partition=tuple(rule(p) for p in self.partition),
            order=tuple(replace(k, expr=rule(k.expr)) for k in self.order),
        )

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return (needed | columns_of(*self.expressions),)

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """Only a condition on the partition columns moves below, because it drops whole groups."""
        return (predicate,) if is_condition_on(predicate, names_of_columns(self.partition)) else None

    @override
    def label(self) -> str:
        return (
            f"WindowGroupLimit: {self.function} <= {self.limit}, "
            f"partition=[{', '.join(map(str, self.partition))}], order=[{', '.join(map(str, self.order))}]"
        )
