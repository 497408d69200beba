"""Call Python functions of Spark's users over windows of rows, as a grouped aggregate function with OVER does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, Frame, SortKey
from kquery_spark.logical.appended_columns import AppendsColumns
from kquery_spark.logical.plan import LogicalPlan
from kquery_spark.logical.window import over_text


@dataclass(frozen=True)
class WindowPython(AppendsColumns):
    """The child's ``required`` columns (None: all) beside the ``results`` of functions called on ``args``.

    All functions share the partition and the order. frames: those of which the functions get bounds: the first row and the
    end of each row's frame, counted from the partition's first row, are arguments before ``args``. code: the pickled
    evaluation, which gets the partitions as iterators of batches of at most ``batch_rows`` rows (0: any number) and gives a
    row for each. calls: the functions' calls in words.
    """

    child: LogicalPlan
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    frames: tuple[Frame, ...]
    args: tuple[Expr, ...]
    results: pa.Schema
    calls: tuple[str, ...]
    batch_rows: int
    code: bytes = field(repr=False)
    required: tuple[str, ...] | None = None

    calls_python: ClassVar[bool] = True

    @override
    def derive_schema(self) -> pa.Schema:
        if len(self.calls) != len(self.results):
            raise PlanError(f"{len(self.calls)} function(s) do not give {len(self.results)} column(s)")
        return pa.schema([*(self.child.schema.field(name) for name in self.kept), *self.results])

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
        return f"WindowPython: {over_text(self.calls, self.partition, self.order)}"
