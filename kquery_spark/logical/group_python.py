"""Calls Python UDFs on whole groups, as ``groupBy().agg(pandas_udf)`` and ``applyInPandas`` do."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, Named, columns_of
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan
from kquery_spark.logical.python_calls import PythonCalls

_ROWS_PER_GROUP = 10.0  # assumed size of a group, because the keys are not looked up in the statistics


@dataclass(frozen=True)
class GroupPython(UnaryPlan):
    """Makes each of the ``calls`` once per group of the child's rows, with the ``args`` of the group's rows.

    If ``aggregates`` is true, the functions return one row per group, and the output starts with the keys. Otherwise they
    return any number of rows, and the output has no keys. An empty input has no groups, even without keys. The function
    receives each group as an iterator of batches.
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
    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        return max(1.0, input_rows[0] / _ROWS_PER_GROUP) if self.aggregates else input_rows[0]

    @override
    def label(self) -> str:
        return f"GroupPython: groupExpr=[{', '.join(map(str, self.keys))}], calls=[{self.calls}]"
