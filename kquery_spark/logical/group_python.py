"""Call Python functions of Spark's users on whole groups, as ``groupBy().agg(pandas_udf)`` and ``applyInPandas`` do."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, Named, columns_of
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan

_ROWS_PER_GROUP = 10.0  # taken for the rows of a group of which nothing is known


@dataclass(frozen=True)
class GroupPython(UnaryPlan):
    """The ``results`` of functions called once for each group of the child's rows on its ``args``.

    aggregates: the functions give one row for a group, which stands beside its keys; otherwise any rows, without keys. No
    row, no group: not even without keys. code: the pickled evaluation, which gets the groups as iterators of batches of at
    most ``batch_rows`` rows (0: any number). calls: the functions' calls in words.
    """

    child: LogicalPlan
    keys: tuple[Named, ...]
    args: tuple[Expr, ...]
    results: pa.Schema
    calls: tuple[str, ...]
    batch_rows: int
    aggregates: bool
    code: bytes = field(repr=False)

    calls_python: ClassVar[bool] = True

    @override
    def derive_schema(self) -> pa.Schema:
        if self.aggregates and len(self.calls) != len(self.results):
            raise PlanError(f"{len(self.calls)} function(s) do not give {len(self.results)} column(s)")
        keys = [key.field for key in self.keys] if self.aggregates else []
        return pa.schema([*keys, *self.results])

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return (*(key.expr for key in self.keys), *self.args)

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        keys = tuple(Named(rule(key.expr), key.name) for key in self.keys)
        return replace(self, keys=keys, args=tuple(map(rule, self.args)))

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return (columns_of(*self.expressions),)

    @override
    def input_of(self, expr: Expr) -> None:
        return None

    @override
    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        return max(1.0, input_rows[0] / _ROWS_PER_GROUP) if self.aggregates else input_rows[0]

    @override
    def label(self) -> str:
        return f"GroupPython: groupExpr=[{', '.join(map(str, self.keys))}], calls=[{', '.join(self.calls)}]"
