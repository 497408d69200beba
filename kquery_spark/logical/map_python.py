"""Calls a Python UDF on all batches of a task, as ``mapInPandas`` and ``mapInArrow`` do."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, columns_of
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan
from kquery_spark.logical.python_calls import PythonCalls


@dataclass(frozen=True)
class MapPython(UnaryPlan):
    """Calls a function once per task with an iterator of batches of ``args``, and outputs whatever rows it returns."""

    child: LogicalPlan
    args: tuple[Expr, ...]
    calls: PythonCalls

    calls_python: ClassVar[bool] = True

    @override
    def derive_schema(self) -> pa.Schema:
        return self.calls.results

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return self.args

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return replace(self, args=tuple(map(rule, self.args)))

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return (columns_of(*self.args),)

    @override
    def label(self) -> str:
        return f"MapPython: {self.calls}"
