"""The columns that expressions refer to while a plan is written, with their positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kquery_spark.errors import SubstraitError
from kquery_spark.expr import Column, Expr, Named
from kquery_spark.logical import LogicalPlan
from kquery_spark.logical.subqueries import OuterColumn


@dataclass(frozen=True)
class OuterRow:
    """The row of the query around a subquery.

    scope: the columns of that row. values: for each OuterColumn in the subquery's plan, the expression it stands for.
    """

    scope: WriteScope
    values: Mapping[str, Expr]

    @classmethod
    def of_subquery(cls, scope: WriteScope, outer: Sequence[Named]) -> OuterRow:
        """Return the outer row for a subquery expression in a scope. outer: the values that the subquery reads."""
        return cls(scope, {named.name: named.expr for named in outer})


@dataclass(frozen=True)
class WriteScope:
    """The positions of the columns of a row, by name. outer: the row of the query around it, in subqueries."""

    positions: Mapping[str, int] = field(default_factory=dict)
    outer: OuterRow | None = None

    @classmethod
    def of_plans(cls, plans: Sequence[LogicalPlan], outer: OuterRow | None) -> WriteScope:
        """Return the scope of expressions over the rows of one input, or of pairs of rows of two inputs."""
        names = [name for plan in plans for name in plan.schema.names]
        return cls({name: i for i, name in enumerate(names)}, outer)

    def position(self, column: Column) -> int:
        """Return the position of a column; raises SubstraitError for an unknown one."""
        position = self.positions.get(column.name)
        if position is None:
            raise SubstraitError(f"unknown column {column.name}; the columns are {', '.join(self.positions)}")
        return position

    def value(self, column: OuterColumn) -> tuple[Expr, WriteScope]:
        """Return the expression that an OuterColumn stands for, and the scope of that expression."""
        if self.outer is None or column.name not in self.outer.values:
            raise SubstraitError(f"the outer query has no value {column.name} for this subquery")
        return self.outer.values[column.name], self.outer.scope
