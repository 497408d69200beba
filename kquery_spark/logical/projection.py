"""Computes columns."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.cached_property import cached_property
from kquery_spark.expr import Column, Expr, Named, columns_of, substitute
from kquery_spark.expr.properties import is_deterministic, is_pure
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan, fresh_name


@dataclass(frozen=True)
class Projection(UnaryPlan):
    """Outputs one column per named expression."""

    child: LogicalPlan
    exprs: tuple[Named, ...]

    is_row_wise: ClassVar[bool] = True
    preserves_rows: ClassVar[bool] = True

    @cached_property
    def definitions(self) -> dict[str, Expr]:
        """The expression of each output column, by name."""
        return {e.name: e.expr for e in self.exprs}

    @property
    def only_drops(self) -> bool:
        """True if each output column is an input column with an unchanged name: columns are only dropped or reordered."""
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
    def prune_columns(self, needed: Set[str]) -> LogicalPlan:
        exprs = tuple(e for e in self.exprs if e.name in needed)
        return self if len(exprs) == len(self.exprs) else replace(self, exprs=exprs)

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return (columns_of(*self.expressions),)

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """The filter below evaluates the column definitions again, for more rows than before, so they have to be pure."""
        if not all(is_pure(self.definitions[name]) for name in columns_of(predicate)):
            return None
        return (substitute(predicate, self.definitions),)

    @override
    def trace_to_input(self, expr: Expr) -> tuple[LogicalPlan, Expr] | None:
        return self.child, substitute(expr, self.definitions)

    @override
    def is_order_sensitive(self, order_matters: bool) -> bool:
        return order_matters

    @override
    def is_duplicate_insensitive(self, duplicates_are_irrelevant: bool) -> tuple[bool, ...]:
        return (duplicates_are_irrelevant and all(map(is_deterministic, self.expressions)),)

    @override
    def label(self) -> str:
        return f"Projection: {', '.join(map(str, self.exprs))}"


def with_columns_of(plan: LogicalPlan, original: LogicalPlan) -> LogicalPlan:
    """Return the plan with exactly the columns of ``original``, in the same order."""
    names = original.schema.names
    if plan.schema.names == names:
        return plan
    return Projection(plan, tuple(Named(plan.column(n), n) for n in names))


def with_output(plan: LogicalPlan, output: tuple[str, ...]) -> LogicalPlan:
    """Return the plan with exactly the columns of ``output``, in that order; a repeated column gets a new name."""
    if tuple(plan.schema.names) == output:
        return plan
    used_names: set[str] = set()
    exprs = []
    for name in output:
        fresh = fresh_name(name, used_names)
        used_names.add(fresh)
        exprs.append(Named(plan.column(name), fresh))
    return Projection(plan, tuple(exprs))
