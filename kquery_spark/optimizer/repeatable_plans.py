"""Which plans return the same rows each time they run, so that a query may contain them twice."""

from __future__ import annotations

from kquery_spark.expr import AggregateCall, Expr, walk
from kquery_spark.expr.properties import is_deterministic
from kquery_spark.logical import LogicalPlan, walk_plan
from kquery_spark.logical.subqueries import Subquery
from kquery_spark.types import names as t


def is_repeatable(plan: LogicalPlan, node_classes: tuple[type[LogicalPlan], ...]) -> bool:
    """True if computing the plan a second time returns the same rows.

    node_classes: the nodes that the plan may consist of. The caller leaves out nodes that do not guarantee this, such as a
    LIMIT, and nodes that it does not want to compute twice.
    """
    nodes = list(walk_plan(plan))
    return all(isinstance(node, node_classes) for node in nodes) and all(
        _is_repeatable_expression(expr) for node in nodes for expr in node.expressions
    )


def _is_repeatable_expression(expr: Expr) -> bool:
    """True if the expression has the same value for the same rows in any order, which float sums do not."""
    return is_deterministic(expr) and all(map(_is_repeatable_part, walk(expr)))


def _is_repeatable_part(expr: Expr) -> bool:
    if isinstance(expr, AggregateCall):
        return expr.entry.repeatable and not any(t.is_fractional(a.dtype) for a in expr.args)
    return not isinstance(expr, Subquery)
