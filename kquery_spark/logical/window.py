"""Computes window functions."""

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
    """Outputs the child's columns, then one column per call. All calls have the same PARTITION BY and ORDER BY."""

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
            if _has_range_offset(call.frame) and len(self.order) != 1:
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
    def prune_columns(self, needed: Set[str]) -> LogicalPlan:
        """Drops unneeded calls; without any call, the node itself is not needed."""
        calls = tuple(c for c in self.calls if c.name in needed)
        if not calls:
            return self.child.prune_columns(needed)
        return self if len(calls) == len(self.calls) else replace(self, calls=calls)

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return ((needed - {c.name for c in self.calls}) | columns_of(*self.expressions),)

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """Only a condition on the partition columns moves below, because it drops whole partitions, not rows of a frame."""
        return (predicate,) if is_condition_on(predicate, names_of_columns(self.partition)) else None

    @override
    def label(self) -> str:
        return f"Window: {format_window(self.calls, self.partition, self.order)}"


def _has_range_offset(frame: Frame) -> bool:
    """True for RANGE frames with an offset, such as ``RANGE 5 PRECEDING``, which is added to the current row's key."""
    bounds = (frame.lower, frame.upper)
    return frame.unit == "range" and any(b is not None and b.value != 0 for b in bounds)


def format_window(calls: Sequence[Named | str], partition: Sequence[Expr], order: Sequence[SortKey]) -> str:
    """Return calls, partition and order in one line, for ``explain``."""
    return (
        f"[{', '.join(map(str, calls))}], partition=[{', '.join(map(str, partition))}], "
        f"order=[{', '.join(map(str, order))}]"
    )
