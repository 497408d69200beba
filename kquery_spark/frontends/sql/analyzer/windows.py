"""Collects the window calls of a SELECT in Window nodes below the select list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, Named, SortKey, WindowCall
from kquery_spark.frontends.unique_names import UniqueNames
from kquery_spark.logical import LogicalPlan, Window


@dataclass(frozen=True)
class WindowMark(Expr):
    """A placeholder for a window call, until the node that computes it is built."""

    call: WindowCall
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]

    @property
    @override
    def dtype(self) -> pa.DataType:
        return self.call.dtype

    @property
    @override
    def nullable(self) -> bool:
        return self.call.nullable

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        return (*self.call.args, *self.partition, *(k.expr for k in self.order))

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        args, parts = len(self.call.args), len(self.partition)
        call = self.call.with_children(children[:args])
        assert isinstance(call, WindowCall)
        order = tuple(replace(k, expr=e) for k, e in zip(self.order, children[args + parts :], strict=True))
        return WindowMark(call, tuple(children[args : args + parts]), order)


class Windows:
    """Collects window calls, and builds one Window node for all calls with the same partition and order."""

    def __init__(self, names: UniqueNames) -> None:
        self._names = names
        self._groups: dict[tuple[tuple[Expr, ...], tuple[SortKey, ...]], list[Named]] = {}
        self._columns: dict[Expr, Expr] = {}

    def rewrite(self, expr: Expr) -> Expr:
        """Rewrite an expression to read the output of the Window nodes."""
        column = self._columns.get(expr)
        if column is not None:
            return column
        if isinstance(expr, WindowMark):
            named = Named(expr.call, self._names.fresh(expr.call.function))
            self._groups.setdefault((expr.partition, expr.order), []).append(named)
            self._columns[expr] = named.column
            return named.column
        if not expr.children:
            return expr
        return expr.with_children([self.rewrite(c) for c in expr.children])

    def plan(self, child: LogicalPlan) -> LogicalPlan:
        """Add a Window node for each partition and order above the child."""
        for (partition, order), calls in self._groups.items():
            child = Window(child, tuple(calls), partition, order)
        return child
