"""Lineage: what a column's values are made of, by which ``df["c"]`` is known again in frames made of ``df``."""

from __future__ import annotations

import hashlib

from kquery_spark.expr import AggregateCall, Column, Expr, columns_of, rename_columns
from kquery_spark.logical.aggregate import Aggregate
from kquery_spark.logical.plan import LogicalPlan
from kquery_spark.logical.projection import Projection
from kquery_spark.logical.scan import Scan
from kquery_spark.logical.set_operation import SetOperation
from kquery_spark.logical.union import Union
from kquery_spark.logical.window import Window
from kquery_spark.sources.memory import MemorySource


def lineage(plan: LogicalPlan, name: str) -> str:
    """Text that is equal for a plan's column and for its copies further up, whatever they are called there."""
    return _Lineage().of(plan, name)


def lineages(plan: LogicalPlan) -> list[str]:
    """The lineage of each output column, in order."""
    known = _Lineage()
    return [known.of(plan, name) for name in plan.schema.names]


class _Lineage:
    def __init__(self) -> None:
        self._known: dict[tuple[int, str], str] = {}

    def of(self, plan: LogicalPlan, name: str) -> str:
        key = (id(plan), name)
        if key not in self._known:
            self._known[key] = self._of(plan, name)
        return self._known[key]

    def _of(self, plan: LogicalPlan, name: str) -> str:
        match plan:
            case Scan(source=MemorySource(origins=origins)) if origins:
                return str(origins[plan.source.schema.get_field_index(name)])
            case Scan():
                return _digest(f"{plan.table} {plan.source!r} {name}")
            case Projection():
                return self._made(plan.child, next(e.expr for e in plan.exprs if e.name == name))
            case Aggregate():
                made = next(e.expr for e in (*plan.keys, *plan.aggregates) if e.name == name)
                # rows without duplicates have the first values of the others
                first = isinstance(made, AggregateCall) and made.function == "first"
                return self._made(plan.child, made.children[0] if first else made)
            case Union() | SetOperation():
                first_input = plan.children[0]
                return self.of(first_input, first_input.schema.names[plan.schema.names.index(name)])
            case Window():
                for call in plan.calls:
                    if call.name == name:
                        parts = [self._made(plan.child, e) for e in (call.expr, *plan.partition)]
                        order = [
                            f"{self._made(plan.child, k.expr)} {k.ascending} {k.nulls_first}"
                            for k in plan.order
                        ]
                        return _digest(f"{parts} {order}")
        for child in plan.children:
            if name in child.schema.names:
                return self.of(child, name)
        return _digest(
            f"{plan.label()} {name} {[self.of(c, n) for c in plan.children for n in c.schema.names]}"
        )

    def _made(self, plan: LogicalPlan, expr: Expr) -> str:
        if isinstance(expr, Column):
            return self.of(plan, expr.name)
        return _digest(str(rename_columns(expr, {n: self.of(plan, n) for n in columns_of(expr)})))


def _digest(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
