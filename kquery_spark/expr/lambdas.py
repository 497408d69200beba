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
    """``function(arguments, lambda)``: a lambda of an element and, optionally, its position, or of a key and a value.

    ``body`` is not a child, and does not refer to columns of the row by their names. The columns of the row that it
    uses are children, in ``captured``, and the body calls them by the names in ``inputs``. So ``columns_of`` finds the
    columns of the row, and no parameters. For example, ``transform(a, x -> x + b)`` captures ``b`` under the name
    ``captured 0``, and has the body ``x + captured 0``.
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
        """The arguments and the captured columns, but not the body, which does not refer to columns of the row."""
        return (*self.arguments, *self.captured)

    def with_body(self, body: Expr) -> HigherOrder:
        """Return the call with another body, or this call if the new body would change its type or nullability."""
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
