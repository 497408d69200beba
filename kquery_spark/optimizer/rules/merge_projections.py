"""Merges two projections that are directly above each other."""

from __future__ import annotations

from collections import Counter

from kquery_spark.expr import Column, Expr, Literal, Named, substitute, walk
from kquery_spark.expr.properties import is_deterministic
from kquery_spark.logical import LogicalPlan, Projection, transform_plan


def merge_projections(plan: LogicalPlan) -> LogicalPlan:
    """Turn ``Projection: #b + 1 AS c`` over ``Projection: #a * 2 AS b`` into ``Projection: #a * 2 + 1 AS c``.

    If the upper projection uses an expression more than once, the projections are not merged, so that it is computed once.
    """
    return transform_plan(plan, _merge)


def _merge(node: LogicalPlan) -> LogicalPlan:
    # The merged projection can be above a third one, so the loop continues with it.
    while isinstance(node, Projection) and isinstance(node.child, Projection):
        below = {e.name: e.expr for e in node.child.exprs}
        # How often the upper projection reads each column of the lower one.
        uses = Counter(c.name for e in node.exprs for c in walk(e.expr) if isinstance(c, Column))
        if not all(_can_be_inlined(below[name], count) for name, count in uses.items()):
            return node
        exprs = tuple(Named(substitute(e.expr, below), e.name) for e in node.exprs)
        node = Projection(node.child.child, exprs)
    return node


def _can_be_inlined(expr: Expr, uses: int) -> bool:
    return isinstance(expr, Column | Literal) or (uses == 1 and is_deterministic(expr))
