"""Keeps the rows for which a condition is true."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, columns_of
from kquery_spark.expr.properties import conjunction, is_deterministic
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan
from kquery_spark.types.names import BOOL, spark_name


@dataclass(frozen=True)
class Filter(UnaryPlan):
    """Keeps the rows whose condition is TRUE; rows with FALSE or NULL are dropped."""

    child: LogicalPlan
    condition: Expr

    is_row_wise: ClassVar[bool] = True
    carries_columns: ClassVar[bool] = True

    @override
    def validate(self) -> None:
        super().validate()
        if self.condition.dtype != BOOL:
            raise PlanError(
                f"a filter needs a boolean, but {self.condition} is {spark_name(self.condition.dtype)}"
            )

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return (self.condition,)

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return Filter(self.child, rule(self.condition))

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return (needed | columns_of(self.condition),)

    @override
    def is_order_sensitive(self, order_matters: bool) -> bool:
        return order_matters

    @override
    def is_duplicate_insensitive(self, duplicates_are_irrelevant: bool) -> tuple[bool, ...]:
        return (duplicates_are_irrelevant and is_deterministic(self.condition),)

    @override
    def label(self) -> str:
        return f"Filter: {self.condition}"


def with_filter(plan: LogicalPlan, terms: list[Expr]) -> LogicalPlan:
    """Return a Filter of the plan by the conjunction of the terms, or the plan itself if there are none."""
    condition = conjunction(terms)
    return plan if condition is None else Filter(plan, condition)
