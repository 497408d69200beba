"""Keep the rows for which a condition is true."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, columns_of
from kquery_spark.expr.properties import is_deterministic
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan
from kquery_spark.types.names import BOOL, spark_name


@dataclass(frozen=True)
class Filter(UnaryPlan):
    """A NULL condition drops the row, as FALSE does."""

    child: LogicalPlan
    condition: Expr

    passes_rows_on: ClassVar[bool] = True
    carries_columns: ClassVar[bool] = True

    def derive_schema(self) -> pa.Schema:
        """See LogicalPlan."""
        return self.child.schema

    def validate(self) -> None:
        """See LogicalPlan."""
        super().validate()
        if self.condition.dtype != BOOL:
            raise PlanError(
                f"a filter needs a boolean, {self.condition} is {spark_name(self.condition.dtype)}"
            )

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """See LogicalPlan."""
        return (self.condition,)

    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        """See LogicalPlan."""
        return Filter(self.child, rule(self.condition))

    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        """See LogicalPlan."""
        return (needed | columns_of(self.condition),)

    def sees_order(self, order_is_seen: bool) -> bool:
        """See LogicalPlan."""
        return order_is_seen

    def ignores_repeats(self, repeats_are_ignored: bool) -> tuple[bool, ...]:
        """See LogicalPlan."""
        return (repeats_are_ignored and is_deterministic(self.condition),)

    def label(self) -> str:
        """See LogicalPlan."""
        return f"Filter: {self.condition}"
