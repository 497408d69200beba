"""Subquery expressions, which hold a plan. Frontends create them, and the rule ``subquery_to_join`` removes them."""

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
    """Inside the plan of a subquery: a value of the current row of the outer query, named as in ``Subquery.outer``."""

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
    """Base class of the subquery expressions.

    ``outer`` are expressions over the outer query's row; ``plan`` reads them as OuterColumns of the same names. They are the
    children of this expression, so functions that walk or rewrite expressions handle them without entering ``plan``.

    ``SELECT ... FROM a WHERE EXISTS (SELECT * FROM b WHERE b.y = a.x + 1)`` becomes ``Exists(plan, outer)``, where
    ``outer`` is ``(#x + 1 AS x1,)`` and ``plan`` is ``Filter: #y = outer(#x1)`` over ``Scan: b``.
    """

    plan: LogicalPlan
    outer: tuple[Named, ...] = ()

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        return tuple(n.expr for n in self.outer)

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        return replace(self, outer=self._outer_from(children))

    def _outer_from(self, children: Sequence[Expr]) -> tuple[Named, ...]:
        return tuple(Named(c, n.name) for c, n in zip(children, self.outer, strict=True))

    def _text(self) -> str:
        return " / ".join(line.strip() for line in format_plan(self.plan).splitlines())


@dataclass(frozen=True)
class ScalarSubquery(Subquery):
    """The value of a plan with one column; NULL if the plan returns no row. More than one row is an error."""

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
    """True if the plan returns at least one row; never NULL."""

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
    """``values IN (plan)``: compares column by column, with equal types, and is NULL where SQL's comparison is unknown."""

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
        return replace(self, outer=self._outer_from(children[:count]), values=tuple(children[count:]))

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.values))}) in ({self._text()})"


def walk_with_subqueries(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """Yield the node and all nodes below it, including those in the plans of subqueries."""
    for node in walk_plan(plan):
        yield node
        for expr in node.expressions:
            for each in walk(expr):
                if isinstance(each, Subquery):
                    yield from walk_with_subqueries(each.plan)


def expressions_with_subqueries(plan: LogicalPlan) -> Iterator[Expr]:
    """Yield the expressions of all nodes of ``walk_with_subqueries``."""
    return (expr for node in walk_with_subqueries(plan) for expr in node.expressions)


def transform_with_subqueries(plan: LogicalPlan, rule: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
    """Rewrite bottom-up like ``transform_plan``, including the plans of subqueries."""

    def transform_subquery(expr: Expr) -> Expr:
        if not isinstance(expr, Subquery):
            return expr
        changed = transform_with_subqueries(expr.plan, rule)
        return expr if changed is expr.plan else replace(expr, plan=changed)

    def transform_node(node: LogicalPlan) -> LogicalPlan:
        return rule(rewrite_expressions(node, lambda expr: transform(expr, transform_subquery)))

    return transform_plan(plan, transform_node)
