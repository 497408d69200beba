"""Subqueries in expressions: their plans, and what they read of the row around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from kquery_spark.expr import Expr, Named, walk
from kquery_spark.frontends.sql.analyzer.name_resolution import find_name
from kquery_spark.frontends.sql.analyzer.scope import Found, Names, Relation
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.logical import Projection, walk_plan
from kquery_spark.logical.subqueries import Exists, InSubquery, OuterColumn, ScalarSubquery

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.expressions import ExpressionAnalyzer
    from kquery_spark.frontends.sql.ast.queries import Query

Lookup = Callable[[tuple[str, ...], int | None], Found | None]
SubqueryAnalyzer = Callable[["Query", "OuterFrame"], Relation]


@dataclass
class OuterFrame:
    """The row around a subquery: how names are found in it, and which of its values the subquery reads."""

    lookup: Lookup
    names: Names
    captured: dict[Expr, OuterColumn] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)

    def find(self, parts: tuple[str, ...], position: int | None) -> Found | None:
        """A name as the subquery sees it."""
        found = self.lookup(parts, position)
        if found is None:
            return None
        value = found.value
        if value not in self.captured:
            name = self.names.fresh(f"outer_{found.column}")
            self.captured[value] = OuterColumn(name, value.dtype, value.nullable)
            self.shown[name] = found.column
        return Found(self.captured[value], found.column, found.fields)

    @property
    def outer(self) -> tuple[Named, ...]:
        """What was read, as a Subquery holds it."""
        return tuple(Named(value, column.name) for value, column in self.captured.items())


def exists(analyzer: ExpressionAnalyzer, node: ast.Exists) -> Expr:
    """EXISTS: whether a subquery has rows."""
    relation, outer = _plan(analyzer, node.query)
    return Exists(relation.plan, outer)


def scalar_subquery(analyzer: ExpressionAnalyzer, node: ast.ScalarSubquery) -> Expr:
    """A subquery as a value."""
    relation, outer = _plan(analyzer, node.query)
    count = len(relation.scope.visible)
    if count != 1:
        analyzer.fail(
            "[INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN] "
            f"a subquery used as a value must have one column, not {count}",
            node,
        )
    return ScalarSubquery(relation.plan, outer)


def in_subquery(analyzer: ExpressionAnalyzer, node: ast.InSubquery) -> Expr:
    """IN, without its NOT: values and the subquery's columns are compared at common types."""
    operands = node.operand.items if isinstance(node.operand, ast.Row) else (node.operand,)
    values = [analyzer.expr(o) for o in operands]
    relation, outer = _plan(analyzer, node.query)
    columns = [c.value for c in relation.scope.visible]
    if len(columns) != len(values):
        analyzer.fail(
            f"[DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH] IN compares {len(values)} value(s) with "
            f"{len(columns)} column(s)",
            node,
        )
    pairs = [analyzer.convert.common([v, c], "IN") for v, c in zip(values, columns, strict=True)]
    plan = relation.plan
    if any(p[1] is not c for p, c in zip(pairs, columns, strict=True)) or len(plan.schema) != len(columns):
        exprs = tuple(Named(p[1], analyzer.names.fresh("in_value")) for p in pairs)
        plan = Projection(plan, exprs)
    return InSubquery(plan, outer, tuple(p[0] for p in pairs))


def outer_names(analyzer: ExpressionAnalyzer, query: Query) -> list[str]:
    """The columns of the row around that a subquery reads, as Spark finds them: from the top of its plan down."""
    frame = _outer_frame(analyzer)
    plan = analyzer.subquery(query, frame).plan
    exprs = (e for node in walk_plan(plan) for x in node.expressions for e in walk(x))
    return [frame.shown[e.name] for e in exprs if isinstance(e, OuterColumn) and e.name in frame.shown]


def _plan(analyzer: ExpressionAnalyzer, query: Query) -> tuple[Relation, tuple[Named, ...]]:
    frame = _outer_frame(analyzer)
    relation = analyzer.subquery(query, frame)
    return relation, frame.outer


def _outer_frame(analyzer: ExpressionAnalyzer) -> OuterFrame:
    """The row around; earlier aliases of the select list mean nothing in a subquery."""
    around = replace(analyzer, aliases={})
    return OuterFrame(partial(find_name, around), analyzer.names)
