"""Compute functions over windows of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, Frame, Named, SortKey, WindowCall, columns_of
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan, is_condition_on, names_of_columns


@dataclass(frozen=True)
class Window(UnaryPlan):
    """The child's columns, then one column per call; all calls share the partition and the order."""

    child: LogicalPlan
    calls: tuple[Named, ...]
    partition: tuple[Expr, ...] = ()
    order: tuple[SortKey, ...] = ()

    preserves_rows: ClassVar[bool] = True
    carries_columns: ClassVar[bool] = True

    @override
    def derive_schema(self) -> pa.Schema:
        return pa.schema([*self.child.schema, *(c.field for c in self.calls)])

    @override
    def validate(self) -> None:
        super().validate()
        for named in self.calls:
            call = named.expr
            if not isinstance(call, WindowCall):
                raise PlanError(f"{call} is not a window function")
            if call.entry is not None and call.entry.ordered and not self.order:
                raise PlanError(f"{call.function} needs an ORDER BY in its window")
            if _adds_to_keys(call.frame) and len(self.order) != 1:
                raise PlanError(
                    f"the frame {call.frame} needs exactly one ORDER BY key, not {len(self.order)}"
                )

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return (*(c.expr for c in self.calls), *self.partition, *(k.expr for k in self.order))

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return replace(
            self,
            calls=tuple(Named(rule(c.expr), c.name) for c in self.calls),
            partition=tuple(rule(p) for p in self.partition),
            order=tuple(replace(k, expr=rule(k.expr)) for k in self.order),
        )

    @override
    def narrowed(self, needed: Set[str]) -> LogicalPlan:
        """Without calls there is nothing to compute."""
        calls = tuple(c for c in self.calls if c.name in needed)
        if not calls:
            return self.child.narrowed(needed)
        return self if len(calls) == len(self.calls) else replace(self, calls=calls)

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return ((needed - {c.name for c in self.calls}) | columns_of(*self.expressions),)

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """Whole partitions go or stay, so nothing that a window computes changes."""
        return (predicate,) if is_condition_on(predicate, names_of_columns(self.partition)) else None

    @override
    def label(self) -> str:
        return f"Window: {over_text(self.calls, self.partition, self.order)}"


def _adds_to_keys(frame: Frame) -> bool:
    """Whether a bound of the frame is some distance from the current row's key."""
    bounds = (frame.lower, frame.upper)
    return frame.unit == "range" and any(b is not None and b.value != 0 for b in bounds)


def over_text(calls: Sequence[Named | str], partition: Sequence[Expr], order: Sequence[SortKey]) -> str:
    """Calls, partition and order in one line."""
    return (
        f"[{', '.join(map(str, calls))}], partition=[{', '.join(map(str, partition))}], "
        f"order=[{', '.join(map(str, order))}]"
    )
