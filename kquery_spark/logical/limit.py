"""Keeps the first rows."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan


@dataclass(frozen=True)
class Limit(UnaryPlan):
    """Skips ``offset`` rows, then outputs at most ``count`` rows (None: all)."""

    child: LogicalPlan
    count: int | None
    offset: int = 0

    @override
    def validate(self) -> None:
        if (self.count is not None and self.count < 0) or self.offset < 0:
            raise PlanError("LIMIT and OFFSET must not be negative")

    @override
    def trace_to_input(self, expr: Expr) -> tuple[LogicalPlan, Expr] | None:
        return self.child, expr

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return (needed,)

    @override
    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        return input_rows[0] if self.count is None else min(input_rows[0], float(self.count))

    @override
    def label(self) -> str:
        count = "all" if self.count is None else str(self.count)
        return f"Limit: {count}" + (f", offset={self.offset}" if self.offset else "")
