"""Compute columns."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Column, Expr, Named, columns_of, substitute
from kquery_spark.expr.properties import is_deterministic, is_pure
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan, fresh_name


@dataclass(frozen=True)
class Projection(UnaryPlan):
    """One output column per named expression."""

    child: LogicalPlan
    exprs: tuple[Named, ...]

    passes_rows_on: ClassVar[bool] = True
    preserves_rows: ClassVar[bool] = True

    @cached_property
    def definitions(self) -> dict[str, Expr]:
        """What each output column is computed by."""
        return {e.name: e.expr for e in self.exprs}

    @property
    def only_drops(self) -> bool:
        """Whether each output column is an input column by its own name."""
        return all(isinstance(e.expr, Column) and e.expr.name == e.name for e in self.exprs)

    @override
    def derive_schema(self) -> pa.Schema:
        return pa.schema([e.field for e in self.exprs])

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(e.expr for e in self.exprs)

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return Projection(self.child, tuple(Named(rule(e.expr), e.name) for e in self.exprs))

    @override
    def narrowed(self, needed: Set[str]) -> LogicalPlan:
        exprs = tuple(e for e in self.exprs if e.name in needed)
        return self if len(exprs) == len(self.exprs) else replace(self, exprs=exprs)

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return (columns_of(*self.expressions),)

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """The filter computes the columns again, and for rows that it drops."""
        if not all(is_pure(self.definitions[name]) for name in columns_of(predicate)):
            return None
        return (substitute(predicate, self.definitions),)

    @override
    def input_of(self, expr: Expr) -> tuple[LogicalPlan, Expr] | None:
        return self.child, substitute(expr, self.definitions)

    @override
    def sees_order(self, order_is_seen: bool) -> bool:
        return order_is_seen

    @override
    def ignores_repeats(self, repeats_are_ignored: bool) -> tuple[bool, ...]:
        return (repeats_are_ignored and all(map(is_deterministic, self.expressions)),)

    @override
    def label(self) -> str:
        return f"Projection: {', '.join(map(str, self.exprs))}"


def same_columns(plan: LogicalPlan, original: LogicalPlan) -> LogicalPlan:
    """The plan with just the columns of another one, in their order."""
    names = original.schema.names
    if plan.schema.names == names:
        return plan
    return Projection(plan, tuple(Named(plan.column(n), n) for n in names))


def with_output(plan: LogicalPlan, output: tuple[str, ...]) -> LogicalPlan:
    """The plan with exactly the columns of ``output``, in that order; a repeated column gets a second name."""
    if tuple(plan.schema.names) == output:
        return plan
    used_names: set[str] = set()
    exprs = []
    for name in output:
        fresh = fresh_name(name, used_names)
        used_names.add(fresh)
        exprs.append(Named(plan.column(name), fresh))
    return Projection(plan, tuple(exprs))
