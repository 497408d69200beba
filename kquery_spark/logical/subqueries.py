"""Expressions that hold a plan: what a frontend makes of a subquery, until an optimizer rule turns it into a join."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr, Named, transform, walk
from kquery_spark.logical.plan import (
    LogicalPlan,
    format_plan,
    rewrite_expressions,
    transform_plan,
    walk_plan,
)
from kquery_spark.types import names as t


@dataclass(frozen=True)
class OuterColumn(Expr):
    """Inside a subquery's plan: a value of the row around it, by the name the subquery gives it in ``outer``."""

    name: str
    type: pa.DataType
    null: bool = True

    @property
    @override
    def dtype(self) -> pa.DataType:
        return self.type

    @property
    @override
    def nullable(self) -> bool:
        return self.null

    def __str__(self) -> str:
        return f"outer(#{self.name})"


@dataclass(frozen=True)
class Subquery(Expr):
    """Base of the three kinds.

    ``outer`` are the expressions over the row around that ``plan`` reads as OuterColumns; as children they are seen
    and rewritten by everything that walks expressions, while the plan inside stays as it is.
    """

    plan: LogicalPlan
    outer: tuple[Named, ...] = ()

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        return tuple(n.expr for n in self.outer)

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        return replace(self, outer=self._renamed(children))

    def _renamed(self, children: Sequence[Expr]) -> tuple[Named, ...]:
        return tuple(Named(c, n.name) for c, n in zip(children, self.outer, strict=True))

    def _text(self) -> str:
        return " / ".join(line.strip() for line in format_plan(self.plan).splitlines())


@dataclass(frozen=True)
class ScalarSubquery(Subquery):
    """The one value of a plan of one column; NULL for no row, an error for more than one."""

    @property
    @override
    def dtype(self) -> pa.DataType:
        return self.plan.schema.field(0).type

    @property
    @override
    def nullable(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"scalar({self._text()})"


@dataclass(frozen=True)
class Exists(Subquery):
    """Whether the plan has a row; never NULL."""

    @property
    @override
    def dtype(self) -> pa.DataType:
        return t.BOOL

    @property
    @override
    def nullable(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"exists({self._text()})"


@dataclass(frozen=True)
class InSubquery(Subquery):
    """``values IN (plan)``, column by column of the same types, with SQL's answer for NULLs."""

    values: tuple[Expr, ...] = ()

    @property
    @override
    def dtype(self) -> pa.DataType:
        return t.BOOL

    @property
    @override
    def nullable(self) -> bool:
        return any(v.nullable for v in self.values) or any(f.nullable for f in self.plan.schema)

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        return (*super().children, *self.values)

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        count = len(self.outer)
        return replace(self, outer=self._renamed(children[:count]), values=tuple(children[count:]))

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.values))}) in ({self._text()})"


def walk_with_subqueries(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """The node and everything below it, also in the plans of its subqueries."""
    for node in walk_plan(plan):
        yield node
        for expr in node.expressions:
            for each in walk(expr):
                if isinstance(each, Subquery):
                    yield from walk_with_subqueries(each.plan)


def transform_with_subqueries(plan: LogicalPlan, rule: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
    """As ``transform_plan``, also in the plans of subqueries."""

    def inside(expr: Expr) -> Expr:
        if not isinstance(expr, Subquery):
            return expr
        changed = transform_with_subqueries(expr.plan, rule)
        return expr if changed is expr.plan else replace(expr, plan=changed)

    def node(each: LogicalPlan) -> LogicalPlan:
        return rule(rewrite_expressions(each, lambda expr: transform(expr, inside)))

    return transform_plan(plan, node)
