"""Call Python functions of Spark's users on whole groups, as ``groupBy().agg(pandas_udf)`` and ``applyInPandas`` do."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, Named, columns_of
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan
from kquery_spark.logical.python_calls import PythonCalls

_ROWS_PER_GROUP = 10.0  # taken for the rows of a group of which nothing is known


@dataclass(frozen=True)
class GroupPython(UnaryPlan):
    """The results of ``calls`` made once for each group of the child's rows on its ``args``.

    aggregates: the functions return one row for a group, which stands beside its keys; otherwise any rows, without keys. No
    row, no group: not even without keys. The evaluation gets the groups as iterators of batches.
    """

    child: LogicalPlan
    keys: tuple[Named, ...]
    args: tuple[Expr, ...]
    calls: PythonCalls
    aggregates: bool

    calls_python: ClassVar[bool] = True

    @override
    def derive_schema(self) -> pa.Schema:
        if not self.aggregates:
            return self.calls.results
        return pa.schema([*(key.field for key in self.keys), *self.calls.columns])

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
        return f"GroupPython: groupExpr=[{', '.join(map(str, self.keys))}], calls=[{self.calls}]"
