"""Base class of nodes that append computed columns to columns of their child."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, columns_of
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan


class AppendsColumns(UnaryPlan):
    """Outputs the child's columns named in ``required`` (None: all), followed by columns computed from ``args``.

    Subclasses are dataclasses with the fields ``args`` and ``required``.
    """

    if TYPE_CHECKING:

        @property
        def args(self) -> tuple[Expr, ...]:
            """The expressions over the child from which the appended columns are computed."""

        @property
        def required(self) -> tuple[str, ...] | None:
            """The names of the child's columns that the output contains; None for all of them."""

    carries_columns: ClassVar[bool] = True

    @property
    def child_columns(self) -> tuple[str, ...]:
        """The names of the child's columns that the output contains, with None resolved to all columns."""
        return tuple(self.child.schema.names) if self.required is None else self.required

    @property
    def appended(self) -> Iterable[pa.Field]:
        """The fields of the columns that the node itself computes."""
        raise NotImplementedError

    @override
    def derive_schema(self) -> pa.Schema:
        return pa.schema([*(self.child.schema.field(name) for name in self.child_columns), *self.appended])

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        return self.args

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        return replace(self, args=tuple(rule(a) for a in self.args))  # type: ignore[call-arg]

    @override
    def prune_columns(self, needed: Set[str]) -> LogicalPlan:
        required = tuple(name for name in self.child_columns if name in needed)
        return self if required == self.required else replace(self, required=required)  # type: ignore[call-arg]

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        return (set(self.child_columns) | columns_of(*self.expressions),)
