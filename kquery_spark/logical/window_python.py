"""Call Python functions of Spark's users over windows of rows, as a grouped aggregate function with OVER does."""

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
from kquery_spark.logical.window import over_text


@dataclass(frozen=True)
class WindowPython(AppendsColumns):
    """The child's ``required`` columns (None: all) beside the results of ``calls`` on ``args``, a row for each.

    All functions share the partition and the order. frames: those of which the functions get bounds: the first row and the
    end of each row's frame, counted from the partition's first row, are arguments before ``args``. The evaluation gets the
    partitions as iterators of batches.
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
        return f"WindowPython: {over_text(self.calls.shown, self.partition, self.order)}"
