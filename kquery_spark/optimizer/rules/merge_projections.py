"""Projections directly above each other become one."""

from __future__ import annotations

from collections import Counter

from kquery_spark.expr import Column, Expr, Literal, Named, substitute, walk
from kquery_spark.expr.properties import is_deterministic
from kquery_spark.logical import LogicalPlan, Projection, transform_plan


def merge_projections(plan: LogicalPlan) -> LogicalPlan:
    """``Projection: #b + 1 AS c`` over ``Projection: #a AS b`` becomes ``Projection: #a + 1 AS c``.

    An expression that is used more than once above stays below, so that it is computed once.
    """
    return transform_plan(plan, _merge)


def _merge(node: LogicalPlan) -> LogicalPlan:
    while isinstance(node, Projection) and isinstance(node.child, Projection):
        below = {e.name: e.expr for e in node.child.exprs}
        uses = Counter(c.name for e in node.exprs for c in walk(e.expr) if isinstance(c, Column))
        if not all(_movable(below[name], count) for name, count in uses.items()):
            return node
        exprs = tuple(Named(substitute(e.expr, below), e.name) for e in node.exprs)
        node = Projection(node.child.child, exprs)
    return node


def _movable(expr: Expr, uses: int) -> bool:
    return isinstance(expr, Column | Literal) or (uses == 1 and is_deterministic(expr))
