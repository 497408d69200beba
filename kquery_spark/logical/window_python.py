"""Calls Python UDFs over windows, as a grouped-aggregate pandas UDF with OVER does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, Frame, SortKey
from kquery_spark.logical.appended_columns import AppendsColumns
from kquery_spark.logical.plan import LogicalPlan
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.logical.window import format_window


@dataclass(frozen=True)
class WindowPython(AppendsColumns):
    """Appends the results of ``calls`` on ``args``, one per row, to the child's ``required`` columns (None: all).

    All functions have the same PARTITION BY and ORDER BY. frames: the bounded frames; for each of them, two arguments before
    ``args`` hold the first row and the end of the row's frame, counted from the first row of the partition. The function
    receives the partitions as iterators of batches.
    """

    child: LogicalPlan
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    frames: tuple[Frame, ...]
    args: tuple[Expr, ...]
    calls: PythonCalls
    required: tuple[str, ...] | None = None

    calls_python: ClassVar[bool] = True

    @property
    @override
    def appended(self) -> pa.Schema:
        return self.calls.columns

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return (*self.args, *self.partition, *(key.expr for key in self.order))

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return replace(
            self,
            args=tuple(map(rule, self.args)),
            partition=tuple(map(rule, self.partition)),
            order=tuple(replace(key, expr=rule(key.expr)) for key in self.order),
        )

    @override
    def label(self) -> str:
        return f"WindowPython: {format_window(self.calls.shown, self.partition, self.order)}"
