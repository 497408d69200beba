"""Functions of arrays that take a lambda: TRANSFORM, FILTER, EXISTS and FORALL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr.nodes import Column, Expr
from kquery_spark.expr.traverse import columns_of, substitute, walk
from kquery_spark.functions.special_forms import HigherOrderFunction, higher_order_function
from kquery_spark.kernels.elements import is_array
from kquery_spark.types import names as t


def _check(function: str, array: pa.DataType, body: pa.DataType, parameters: int) -> None:
    """Raise PlanError or Unsupported for a lambda that the function does not take."""
    entry = higher_order_function(function)
    if entry is None:
        raise PlanError(f"there is no function {function} of a lambda")
    if not is_array(array):
        raise PlanError(f"{t.spark_name(array)} is no array")
    if not entry.is_condition and body == t.NULL:
        raise Unsupported(f"{function} to nothing but NULL is not supported")
    if entry.is_condition and body not in (t.BOOL, t.NULL):
        raise PlanError(f"the lambda of {function} has to be a condition")
    if parameters not in ((1, 2) if entry.indexed else (1,)):
        raise PlanError(f"the lambda of {function} cannot have {parameters} parameters")


@dataclass(frozen=True)
class HigherOrder(Expr):
    """``function(array, lambda)`` with a lambda of an element and, maybe, its position in the array.

    ``body`` stands by itself: its columns are the ``parameters`` and ``inputs``, one for each of the ``captured`` columns
    of the row. So whatever looks for the columns that an expression reads finds those of the row and no others.
    """

    function: str
    array: Expr
    captured: tuple[Expr, ...]
    body: Expr
    parameters: tuple[str, ...]
    inputs: tuple[str, ...]

    @classmethod
    def of(cls, function: str, array: Expr, body: Expr, parameters: Sequence[Column]) -> HigherOrder:
        """A call; columns of ``body`` that are no parameters are those of the row. PlanError for wrong types."""
        _check(function, array.dtype, body.dtype, len(parameters))
        own = tuple(p.name for p in parameters)
        outer = {e.name: e for e in walk(body) if isinstance(e, Column) and e.name not in own}
        inputs = {name: f"captured {i}" for i, name in enumerate(sorted(columns_of(*outer.values())))}
        moved = {name: Column(inputs[name], outer[name].type, outer[name].null) for name in inputs}
        captured = tuple(outer[name] for name in inputs)
        return cls(function, array, captured, substitute(body, moved), own, tuple(inputs.values()))

    @property
    def entry(self) -> HigherOrderFunction:
        """The registry entry."""
        entry = higher_order_function(self.function)
        if entry is None:
            raise PlanError(f"there is no function {self.function} of a lambda")
        return entry

    @property
    @override
    def dtype(self) -> pa.DataType:
        if self.entry.quantifies:
            return t.BOOL
        if self.entry.is_condition:
            return self.array.dtype
        return pa.list_(pa.field("element", self.body.dtype, self.body.nullable))

    @property
    @override
    def nullable(self) -> bool:
        return self.array.nullable or (self.entry.quantifies and self.body.nullable)

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        """The body is not one of them."""
        return (self.array, *self.captured)

    def with_body(self, body: Expr) -> HigherOrder:
        """The same call with another body; this one where what it gives would be of another type."""
        changed = replace(self, body=body)
        return changed if (changed.dtype, changed.nullable) == (self.dtype, self.nullable) else self

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        return replace(self, array=children[0], captured=tuple(children[1:]))

    def __str__(self) -> str:
        shown = substitute(self.body, dict(zip(self.inputs, self.captured, strict=True)))
        return f"{self.function.upper()}({self.array}, ({', '.join(self.parameters)}) -> {shown})"
