"""Base of nodes that put columns of their own beside some of their child's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, columns_of
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan


class AppendsColumns(UnaryPlan):
    """The child's ``required`` columns (None: all) beside columns computed from ``args``, both fields of the node."""

    if TYPE_CHECKING:

        @property
        def args(self) -> tuple[Expr, ...]:
            """What the node's own columns are computed from."""

        @property
        def required(self) -> tuple[str, ...] | None:
            """The child's columns in the output."""

    carries_columns: ClassVar[bool] = True

    @property
    def kept(self) -> tuple[str, ...]:
        """The child's columns that are in the output."""
        return tuple(self.child.schema.names) if self.required is None else self.required

    @property
    def appended(self) -> Iterable[pa.Field]:
        """The node's own columns."""
        raise NotImplementedError

    @override
    def derive_schema(self) -> pa.Schema:
        return pa.schema([*(self.child.schema.field(name) for name in self.kept), *self.appended])

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return self.args

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return replace(self, args=tuple(rule(a) for a in self.args))  # type: ignore[call-arg]

    @override
    def narrowed(self, needed: Set[str]) -> LogicalPlan:
        required = tuple(name for name in self.kept if name in needed)
        return self if required == self.required else replace(self, required=required)  # type: ignore[call-arg]

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return (set(self.kept) | columns_of(*self.expressions),)
