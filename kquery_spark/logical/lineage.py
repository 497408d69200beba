"""Column lineage: identifies a column by what its values are computed from.

It resolves ``df["c"]`` in frames that are derived from ``df``, as in ``df.filter(...).select(df["c"])``: the column of the
derived frame that has the same lineage is meant, whatever it is called there.
"""

from __future__ import annotations

import hashlib

from kquery_spark.expr import AggregateCall, Column, Expr, UserCall, columns_of, rename_columns, walk
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
    """Return a string that is equal for a column and for its copies in the plans above, whatever their names are."""
    return _Lineage().column(plan, name)


def lineages(plan: LogicalPlan) -> list[str]:
    """Return the lineage of each output column, in order."""
    computed = _Lineage()
    return [computed.column(plan, name) for name in plan.schema.names]


class _Lineage:
    """Computes lineages and caches them by node and column, because plans share subtrees."""

    def __init__(self) -> None:
        self._by_node: NodeMap[dict[str, str]] = NodeMap()

    def column(self, plan: LogicalPlan, name: str) -> str:
        columns = self._by_node.setdefault(plan, dict)
        if name not in columns:
            columns[name] = self._compute(plan, name)
        return columns[name]

    def _compute(self, plan: LogicalPlan, name: str) -> str:
        match plan:
            case Scan():
                return _scan_column(plan, name)
            case Projection():
                return self._expression(plan.child, plan.definitions[name])
            case Aggregate():
                return self._aggregate_output(plan, name)
            case Union() | SetOperation():
                first = plan.children[0]
                return self.column(first, first.schema.names[plan.schema.names.index(name)])
            case Window():
                call = next((c.expr for c in plan.calls if c.name == name), None)
                if call is not None:
                    return self._window_call(plan, call)
        return self._input_or_new_column(plan, name)

    def _input_or_new_column(self, plan: LogicalPlan, name: str) -> str:
        """Return the lineage of the input column of this name; for a column that the node computes, a new one."""
        for child in plan.children:
            if name in child.column_names:
                return self.column(child, name)
        return _digest(
            f"{plan.label()} {name} {[self.column(c, n) for c in plan.children for n in c.schema.names]}"
        )

    def _aggregate_output(self, plan: Aggregate, name: str) -> str:
        expr = next(e.expr for e in (*plan.keys, *plan.aggregates) if e.name == name)
        # dropDuplicates is an aggregate whose other columns are first(c): these still count as the same columns.
        is_first = isinstance(expr, AggregateCall) and expr.entry.fills_rows
        return self._expression(plan.child, expr.children[0] if is_first else expr)

    def _window_call(self, plan: Window, call: Expr) -> str:
        parts = [self._expression(plan.child, e) for e in (call, *plan.partition)]
        order = [f"{self._expression(plan.child, k.expr)} {k.ascending} {k.nulls_first}" for k in plan.order]
        return _digest(f"{parts} {order}")

    def _expression(self, plan: LogicalPlan, expr: Expr) -> str:
        if isinstance(expr, Column):
            return self.column(plan, expr.name)
        renamed = rename_columns(expr, {n: self.column(plan, n) for n in columns_of(expr)})
        # The string of a call has only the function's name, and different functions may share one, such as <lambda>.
        codes = [e.code for e in walk(expr) if isinstance(e, UserCall)]
        return _digest(f"{renamed} {codes}" if codes else str(renamed))


def _scan_column(scan: Scan, name: str) -> str:
    origins = scan.source.origins if isinstance(scan.source, MemorySource) else ()
    if origins:
        return str(origins[scan.source.schema.get_field_index(name)])
    return _digest(f"{scan.table} {scan.source!r} {name}")


def _digest(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
