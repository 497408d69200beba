"""Calls a Python UDF on pairs of groups with the same key, as ``cogroup().applyInPandas`` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, columns_of
from kquery_spark.logical.plan import BinaryPlan, LogicalPlan
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.types.names import spark_name


@dataclass(frozen=True)
class CogroupSide:
    """One side of a cogroup: the expressions that its rows are grouped by, and those passed to the function."""

    keys: tuple[Expr, ...]
    args: tuple[Expr, ...]

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The keys and the arguments."""
        return (*self.keys, *self.args)

    def mapped(self, rule: Callable[[Expr], Expr]) -> CogroupSide:
        """Return the side with ``rule`` applied to each expression."""
        return CogroupSide(tuple(map(rule, self.keys)), tuple(map(rule, self.args)))


@dataclass(frozen=True)
class CogroupPython(BinaryPlan):
    """Calls a function once per key, with the left rows and the right rows of that key, and outputs its results.

    A key that only one side has is called with no rows for the other side. NULL is a key like any other. Without keys,
    all rows of a side form one group, unless both sides are empty. The function receives pairs of lists of batches.
    """

    left: LogicalPlan
    right: LogicalPlan
    left_side: CogroupSide
    right_side: CogroupSide
    calls: PythonCalls

    calls_python: ClassVar[bool] = True

    @override
    def derive_schema(self) -> pa.Schema:
        return self.calls.results

    @override
    def validate(self) -> None:
        super().validate()
        for left, right in zip(self.left_side.keys, self.right_side.keys, strict=True):
            if left.dtype != right.dtype:
                raise PlanError(
                    f"a cogroup by {left} and {right} compares {spark_name(left.dtype)} with {spark_name(right.dtype)}; "
                    "both keys need the same type"
                )

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return (*self.left_side.expressions, *self.right_side.expressions)

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return replace(self, left_side=self.left_side.mapped(rule), right_side=self.right_side.mapped(rule))

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return columns_of(*self.left_side.expressions), columns_of(*self.right_side.expressions)

    @override
    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        return sum(input_rows)

    @override
    def label(self) -> str:
        shown = zip(self.left_side.keys, self.right_side.keys, strict=True)
        return f"CogroupPython: groupExpr=[{', '.join(f'{a} = {b}' for a, b in shown)}], call={self.calls}"
