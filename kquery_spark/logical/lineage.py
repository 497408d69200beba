"""Lineage: what a column's values are made of, by which ``df["c"]`` is known again in frames made of ``df``."""

from __future__ import annotations

import hashlib

from kquery_spark.expr import AggregateCall, Column, Expr, columns_of, rename_columns
from kquery_spark.logical.aggregate import Aggregate
from kquery_spark.logical.node_map import NodeMap
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
        self._by_node: NodeMap[dict[str, str]] = NodeMap()

    def of(self, plan: LogicalPlan, name: str) -> str:
        columns = self._by_node.setdefault(plan, dict)
        if name not in columns:
            columns[name] = self._of(plan, name)
        return columns[name]

    def _of(self, plan: LogicalPlan, name: str) -> str:
        match plan:
            case Scan():
                return _scan_column(plan, name)
            case Projection():
                return self._computed(plan.child, plan.definitions[name])
            case Aggregate():
                return self._aggregated(plan, name)
            case Union() | SetOperation():
                first = plan.children[0]
                return self.of(first, first.schema.names[plan.schema.names.index(name)])
            case Window():
                call = next((c.expr for c in plan.calls if c.name == name), None)
                if call is not None:
                    return self._over_window(plan, call)
        return self._passed_through(plan, name)

    def _passed_through(self, plan: LogicalPlan, name: str) -> str:
        """That of a child's column of this name; a new one for a column that the node makes from all it reads."""
        for child in plan.children:
            if name in child.column_names:
                return self.of(child, name)
        return _digest(
            f"{plan.label()} {name} {[self.of(c, n) for c in plan.children for n in c.schema.names]}"
        )

    def _aggregated(self, plan: Aggregate, name: str) -> str:
        expr = next(e.expr for e in (*plan.keys, *plan.aggregates) if e.name == name)
        # rows without duplicates have the first values of the others
        first = isinstance(expr, AggregateCall) and expr.function == "first"
        return self._computed(plan.child, expr.children[0] if first else expr)

    def _over_window(self, plan: Window, call: Expr) -> str:
        parts = [self._computed(plan.child, e) for e in (call, *plan.partition)]
        order = [f"{self._computed(plan.child, k.expr)} {k.ascending} {k.nulls_first}" for k in plan.order]
        return _digest(f"{parts} {order}")

    def _computed(self, plan: LogicalPlan, expr: Expr) -> str:
        if isinstance(expr, Column):
            return self.of(plan, expr.name)
        return _digest(str(rename_columns(expr, {n: self.of(plan, n) for n in columns_of(expr)})))


def _scan_column(scan: Scan, name: str) -> str:
    origins = scan.source.origins if isinstance(scan.source, MemorySource) else ()
    if origins:
        return str(origins[scan.source.schema.get_field_index(name)])
    return _digest(f"{scan.table} {scan.source!r} {name}")


def _digest(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
