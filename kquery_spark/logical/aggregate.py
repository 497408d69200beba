"""Groups rows and aggregates each group."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import AggregateCall, Expr, Named, columns_of, substitute
from kquery_spark.expr.properties import is_deterministic
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan, is_condition_on
from kquery_spark.types import names as t


@dataclass(frozen=True)
class Aggregate(UnaryPlan):
    """Outputs the keys, then the aggregates. Without keys, it outputs exactly one row, even for no input rows.

    ``keys`` without ``aggregates`` is DISTINCT.
    """

    child: LogicalPlan
    keys: tuple[Named, ...]
    aggregates: tuple[Named, ...]

    @override
    def derive_schema(self) -> pa.Schema:
        return pa.schema([e.field for e in (*self.keys, *self.aggregates)])

    @override
    def validate(self) -> None:
        super().validate()
        for named in self.aggregates:
            if not isinstance(named.expr, AggregateCall):
                raise PlanError(f"{named.expr} is not an aggregate function")

    @property
    def calls(self) -> tuple[AggregateCall, ...]:
        """The aggregate calls, in output order."""
        return tuple(n.expr for n in self.aggregates if isinstance(n.expr, AggregateCall))

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(e.expr for e in (*self.keys, *self.aggregates))

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return Aggregate(
            self.child,
            tuple(Named(rule(k.expr), k.name) for k in self.keys),
            tuple(Named(rule(a.expr), a.name) for a in self.aggregates),
        )

    @override
    def prune_columns(self, needed: Set[str]) -> LogicalPlan:
        """Drops unneeded aggregates. Keys stay even if nothing reads them, because they define the groups."""
        aggregates = tuple(a for a in self.aggregates if a.name in needed)
        return self if len(aggregates) == len(self.aggregates) else replace(self, aggregates=aggregates)

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return (columns_of(*self.expressions),)

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """Only a condition on the keys moves below, because it drops whole groups and leaves the others complete."""
        if not is_condition_on(predicate, {k.name for k in self.keys}):
            return None
        below = self._in_terms_of_input(predicate)
        # The pushed filter evaluates these keys a second time, so they must be deterministic.
        return (below,) if is_deterministic(below) else None

    @override
    def trace_to_input(self, expr: Expr) -> tuple[LogicalPlan, Expr] | None:
        if not columns_of(expr) <= {k.name for k in self.keys}:
            return None
        return self.child, self._in_terms_of_input(expr)

    def _in_terms_of_input(self, expr: Expr) -> Expr:
        """Replace each key that the expression reads by the expression over the child that computes the key."""
        return substitute(expr, {k.name: k.expr for k in self.keys})

    @override
    def is_order_sensitive(self, order_matters: bool) -> bool:
        return any(map(_depends_on_order, self.calls))

    @override
    def is_duplicate_insensitive(self, duplicates_are_irrelevant: bool) -> tuple[bool, ...]:
        # DISTINCT calls, min, max and the like give the same result for one copy of a row as for several.
        calls_ignore_duplicates = all(c.distinct or c.entry.duplicate_free for c in self.calls)
        return (calls_ignore_duplicates and all(map(is_deterministic, self.expressions)),)

    @override
    def label(self) -> str:
        keys = ", ".join(map(str, self.keys))
        return f"Aggregate: groupExpr=[{keys}], aggregateExpr=[{', '.join(map(str, self.aggregates))}]"


def distinct_rows(plan: LogicalPlan) -> Aggregate:
    """Return the plan of DISTINCT: an Aggregate by all columns."""
    return Aggregate(plan, tuple(Named(plan.column(n), n) for n in plan.schema.names), ())


def _depends_on_order(call: AggregateCall) -> bool:
    """True if the result can depend on the order of the rows."""
    if call.entry.ordered:
        return True
    # Sums and averages of floats are rounded at each step, so another order can change the last digits.
    accumulates = not call.entry.counts and not call.entry.duplicate_free
    return accumulates and any(t.is_fractional(a.dtype) for a in call.args)
