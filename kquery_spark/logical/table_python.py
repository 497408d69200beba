"""Calls a Python table function (UDTF), as ``LATERAL f(x)`` and ``f(TABLE(t) PARTITION BY k)`` do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, SortKey
from kquery_spark.logical.appended_columns import AppendsColumns
from kquery_spark.logical.plan import LogicalPlan
from kquery_spark.logical.python_calls import PythonCalls


@dataclass(frozen=True)
class TablePython(AppendsColumns):
    """Outputs the rows that a table function returns for ``args``.

    If ``partition`` is None, the function is called row by row (LATERAL), and each result row starts with the child's
    ``required`` columns (None: all). Otherwise the function reads a table: rows with equal ``partition`` values go to one
    task, sorted by ``order``; an empty ``partition`` sends all rows to one task.
    """

    child: LogicalPlan
    args: tuple[Expr, ...]
    calls: PythonCalls
    partition: tuple[Expr, ...] | None = None
    order: tuple[SortKey, ...] = ()
    required: tuple[str, ...] | None = None

    calls_python: ClassVar[bool] = True

    @override
    def validate(self) -> None:
        if self.partition is not None and self.required != ():
            raise PlanError("a table function over partitions cannot output columns of its input")
        super().validate()

    @property
    @override
    def appended(self) -> pa.Schema:
        return self.calls.results

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return (*self.args, *(self.partition or ()), *(key.expr for key in self.order))

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return replace(
            self,
            args=tuple(map(rule, self.args)),
            partition=None if self.partition is None else tuple(map(rule, self.partition)),
            order=tuple(replace(key, expr=rule(key.expr)) for key in self.order),
        )

    @override
    def label(self) -> str:
        if self.partition is None:
            return f"TablePython: {self.calls}"
        by = f"partition=[{', '.join(map(str, self.partition))}], order=[{', '.join(map(str, self.order))}]"
        return f"TablePython: {self.calls}, {by}"
