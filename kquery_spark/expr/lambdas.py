"""Calls of functions that take a lambda: TRANSFORM, FILTER, AGGREGATE, MAP_FILTER and their like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr.nodes import Column, Expr
from kquery_spark.expr.traverse import columns_of, substitute, walk
from kquery_spark.functions.nested.higher_order import HigherOrderFunction, higher_order_function
from kquery_spark.functions.registry import EvalMode, Nullability


@dataclass(frozen=True)
class HigherOrder(Expr):
    """``function(arguments, lambda)``: a lambda of an element and, maybe, its position, or of a key and a value.

    ``body`` stands by itself: its columns are the ``parameters`` and ``inputs``, one for each of the ``captured`` columns
    of the row. So whatever looks for the columns that an expression reads finds those of the row and no others.
    """

    function: str
    arguments: tuple[Expr, ...]
    captured: tuple[Expr, ...]
    body: Expr
    parameters: tuple[str, ...]
    inputs: tuple[str, ...]
    mode: EvalMode = EvalMode.ANSI

    @classmethod
    def of(
        cls,
        function: str,
        arguments: Sequence[Expr],
        body: Expr,
        parameters: Sequence[Column],
        mode: EvalMode = EvalMode.ANSI,
    ) -> HigherOrder:
        """Build a call; other columns of ``body`` than parameters belong to the row. Raises PlanError for wrong types."""
        types = [a.dtype for a in arguments]
        entry = _entry(function)
        entry.check(types, len(parameters), body.dtype)
        entry.result(types, pa.field("value", body.dtype, body.nullable))
        own = tuple(p.name for p in parameters)
        outer = {e.name: e for e in walk(body) if isinstance(e, Column) and e.name not in own}
        inputs = {name: f"captured {i}" for i, name in enumerate(sorted(columns_of(*outer.values())))}
        moved = {name: Column(inputs[name], outer[name].type, outer[name].null) for name in inputs}
        captured = tuple(outer[name] for name in inputs)
        return cls(
            entry.name,
            tuple(arguments),
            captured,
            substitute(body, moved),
            own,
            tuple(inputs.values()),
            mode,
        )

    @property
    def entry(self) -> HigherOrderFunction:
        """The registry entry."""
        return _entry(self.function)

    @property
    def parameter_fields(self) -> list[pa.Field]:
        """The lambda's parameters, by their names in the body."""
        fields = self.entry.check([a.dtype for a in self.arguments], len(self.parameters), self.body.dtype)
        return [field.with_name(name) for field, name in zip(fields, self.parameters, strict=True)]

    @property
    @override
    def dtype(self) -> pa.DataType:
        value = pa.field("value", self.body.dtype, self.body.nullable)
        return self.entry.result([a.dtype for a in self.arguments], value)

    @property
    @override
    def nullable(self) -> bool:
        match self.entry.nullable:
            case Nullability.OTHER_REASONS:
                return True
            case Nullability.ARGUMENT_OR_BODY if self.body.nullable:
                return True
        return any(a.nullable for a in self.arguments)

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        """The body is not one of them."""
        return (*self.arguments, *self.captured)

    def with_body(self, body: Expr) -> HigherOrder:
        """The same call with another body; this one where what it gives would be of another type."""
        changed = replace(self, body=body)
        return changed if (changed.dtype, changed.nullable) == (self.dtype, self.nullable) else self

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        count = len(self.arguments)
        return replace(self, arguments=tuple(children[:count]), captured=tuple(children[count:]))

    def __str__(self) -> str:
        shown = substitute(self.body, dict(zip(self.inputs, self.captured, strict=True)))
        arguments = ", ".join(map(str, self.arguments))
        return f"{self.function.upper()}({arguments}, ({', '.join(self.parameters)}) -> {shown})"


def _entry(function: str) -> HigherOrderFunction:
    entry = higher_order_function(function)
    if entry is None:
        raise PlanError(f"unknown function {function} of a lambda")
    return entry
