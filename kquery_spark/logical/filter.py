"""Keep the rows for which a condition is true."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

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

    @override
    def derive_schema(self) -> pa.Schema:
        return self.child.schema

    @override
    def validate(self) -> None:
        super().validate()
        if self.condition.dtype != BOOL:
            raise PlanError(
                f"a filter needs a boolean, {self.condition} is {spark_name(self.condition.dtype)}"
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
    def sees_order(self, order_is_seen: bool) -> bool:
        return order_is_seen

    @override
    def ignores_repeats(self, repeats_are_ignored: bool) -> tuple[bool, ...]:
        return (repeats_are_ignored and is_deterministic(self.condition),)

    @override
    def label(self) -> str:
        return f"Filter: {self.condition}"
