"""Sorts rows."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from kquery_spark.expr import Expr, SortKey, columns_of
from kquery_spark.expr.properties import is_deterministic
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan


@dataclass(frozen=True)
class Sort(UnaryPlan):
    """Outputs all rows in the order of the keys."""

    child: LogicalPlan
    keys: tuple[SortKey, ...]

    preserves_rows: ClassVar[bool] = True
    carries_columns: ClassVar[bool] = True

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(k.expr for k in self.keys)

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return Sort(self.child, tuple(replace(k, expr=rule(k.expr)) for k in self.keys))

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return (needed | columns_of(*self.expressions),)

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        return (predicate,)

    @override
    def is_order_sensitive(self, order_matters: bool) -> bool:
        return False

    @override
    def is_duplicate_insensitive(self, duplicates_are_irrelevant: bool) -> tuple[bool, ...]:
        return (duplicates_are_irrelevant and all(map(is_deterministic, self.expressions)),)

    @override
    def label(self) -> str:
        return f"Sort: {', '.join(map(str, self.keys))}"
