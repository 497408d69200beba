"""Checks that its input has at most one row, as SQL requires of a scalar subquery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan


@dataclass(frozen=True)
class SingleRow(UnaryPlan):
    """Outputs the child's row, if there is one. A second row is an error when the query runs."""

    child: LogicalPlan

    @override
    def trace_to_input(self, expr: Expr) -> tuple[LogicalPlan, Expr] | None:
        return self.child, expr

    @override
    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        return min(input_rows[0], 1.0)
