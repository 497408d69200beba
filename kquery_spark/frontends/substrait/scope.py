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
class OuterQuery:
    """The query around a subquery that is being read.

    scope: the columns that the subquery expression itself can refer to. values: the expressions over these columns that the
    subquery's plan reads, each under a name that is unique in the whole plan.
    """

    scope: Scope
    names: UniqueNames
    values: dict[Expr, Named] = field(default_factory=dict)

    def column(self, value: Expr) -> OuterColumn:
        """Return the column under which the subquery's plan reads a value of the outer row; adds it to ``values``."""
        named = self.values.get(value)
        if named is None:
            stem = value.name if isinstance(value, Column | OuterColumn) else "value"
            named = self.values[value] = Named(value, self.names.fresh(f"outer_{stem}"))
        return OuterColumn(named.name, value.dtype, value.nullable)


@dataclass
class WindowCalls:
    """The window calls in the expressions of one projection, grouped by their PARTITION BY and ORDER BY.

    Substrait has window calls inside of expressions, the logical plan has Window nodes. So the reader replaces each call by
    a column, and afterwards puts a Window node for each group below the projection.
    """

    used_names: set[str]
    groups: dict[tuple[tuple[Expr, ...], tuple[SortKey, ...]], list[Named]] = field(default_factory=dict)

    def column(
        self, call: WindowCall, partition: tuple[Expr, ...], order: tuple[SortKey, ...], name: str
    ) -> Column:
        """Return the column for a call, which ``add_to`` computes."""
        named = Named(call, fresh_name(name or call.function, self.used_names))
        self.used_names.add(named.name)
        self.groups.setdefault((partition, order), []).append(named)
        return named.column

    def add_to(self, plan: LogicalPlan) -> LogicalPlan:
        """Return the plan with one Window node for each group on top of it."""
        for (partition, order), calls in self.groups.items():
            plan = Window(plan, tuple(calls), partition, order)
        return plan


@dataclass
class Scope:
    """The columns that an expression can refer to, by position.

    outer: the query around the subquery that the expression is in; None outside of subqueries. windows: collects window
    calls; None where they are not allowed. name: the name that the plan suggests for the column of the expression, or "".
    """

    columns: tuple[Column, ...]
    outer: OuterQuery | None = None
    windows: WindowCalls | None = None
    name: str = ""

    @classmethod
    def of_plan(cls, plan: LogicalPlan, outer: OuterQuery | None) -> Scope:
        """Return the scope of expressions over the rows of a plan."""
        return cls(columns_of_plan(plan), outer)

    def column(self, index: int) -> Column:
        """Return a column; raises SubstraitError for a position that does not exist."""
        if not 0 <= index < len(self.columns):
            raise SubstraitError(f"a reference to field {index} of {len(self.columns)} fields")
        return self.columns[index]

    def outer_column(self, steps: int, index: int) -> Expr:
        """Return a column of the query that is ``steps`` subqueries further out; 0 is this query.

        Every query in between passes the value on: each adds the column of the next outer query to its ``values``.
        """
        if steps == 0:
            return self.column(index)
        if self.outer is None:
            raise SubstraitError("an outer reference is not in a subquery")
        return self.outer.column(self.outer.scope.outer_column(steps - 1, index))


def columns_of_plan(plan: LogicalPlan) -> tuple[Column, ...]:
    """Return references to all columns of a plan."""
    return tuple(plan.column(name) for name in plan.schema.names)
