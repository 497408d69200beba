"""The columns that expressions of a plan can refer to."""

from __future__ import annotations

from dataclasses import dataclass, field

from kquery_spark.errors import SubstraitError
from kquery_spark.expr import Column, Expr, Named, SortKey, WindowCall
from kquery_spark.frontends.unique_names import UniqueNames
from kquery_spark.logical import LogicalPlan, Window
from kquery_spark.logical.plan import fresh_name
from kquery_spark.logical.subqueries import OuterColumn


@dataclass
class Frame:
    """A subquery that is being read: the scope that it is in, and the values of that scope that its plan reads."""

    scope: Scope
    names: UniqueNames
    outer: dict[Expr, Named] = field(default_factory=dict)

    def read(self, value: Expr) -> OuterColumn:
        """Return the column by which the subquery's plan reads a value of the outer query's row."""
        named = self.outer.get(value)
        if named is None:
            stem = value.name if isinstance(value, Column | OuterColumn) else "value"
            named = self.outer[value] = Named(value, self.names.fresh(f"outer_{stem}"))
        return OuterColumn(named.name, value.dtype, value.nullable)


@dataclass
class Windows:
    """The window calls in the expressions of one projection, by their PARTITION BY and ORDER BY."""

    used_names: set[str]
    groups: dict[tuple[tuple[Expr, ...], tuple[SortKey, ...]], list[Named]] = field(default_factory=dict)

    def column(
        self, call: WindowCall, partition: tuple[Expr, ...], order: tuple[SortKey, ...], name: str
    ) -> Column:
        """Return the column of a call, which ``computed_over`` adds to the plan."""
        named = Named(call, fresh_name(name or call.function, self.used_names))
        self.used_names.add(named.name)
        self.groups.setdefault((partition, order), []).append(named)
        return named.column

    def computed_over(self, plan: LogicalPlan) -> LogicalPlan:
        """Return the plan with the columns of all calls."""
        for (partition, order), calls in self.groups.items():
            plan = Window(plan, tuple(calls), partition, order)
        return plan


@dataclass
class Scope:
    """The columns of a row, by position. frame: the subquery that the row is in. windows: where window calls are collected.

    name: the name that the plan suggests for the column of the expression that is being read.
    """

    columns: tuple[Column, ...]
    frame: Frame | None = None
    windows: Windows | None = None
    name: str = ""

    @classmethod
    def of_plan(cls, plan: LogicalPlan, frame: Frame | None) -> Scope:
        """Return the scope of expressions over the rows of a plan."""
        return cls(columns_of_plan(plan), frame)

    def column(self, index: int) -> Column:
        """Return a column; raises SubstraitError for a position that does not exist."""
        if not 0 <= index < len(self.columns):
            raise SubstraitError(f"a reference to field {index} of {len(self.columns)} fields")
        return self.columns[index]

    def outer(self, steps: int, index: int) -> Expr:
        """Return a column of the query that is ``steps`` subqueries further out; 0 is this one."""
        if steps == 0:
            return self.column(index)
        if self.frame is None:
            raise SubstraitError("an outer reference that is not in a subquery")
        return self.frame.read(self.frame.scope.outer(steps - 1, index))


def columns_of_plan(plan: LogicalPlan) -> tuple[Column, ...]:
    """Return references to all columns of a plan."""
    return tuple(plan.column(name) for name in plan.schema.names)
