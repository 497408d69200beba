"""Every node passes up only the columns that are needed above it."""

from __future__ import annotations

from collections.abc import Set

from kquery_spark.expr import Named
from kquery_spark.logical import Join, LogicalPlan, Projection
from kquery_spark.logical.join import JoinKind
from kquery_spark.logical.plan import with_new_children


def projection_pushdown(plan: LogicalPlan) -> LogicalPlan:
    """``Projection: #a`` over a scan of twenty columns makes the scan read ``projection=[a]``.

    The root keeps all its columns in their order.
    """
    return _prune(plan, plan.column_names)


def _prune(plan: LogicalPlan, needed: Set[str]) -> LogicalPlan:
    node = plan.prune_columns(needed)
    inputs = zip(node.children, node.required_columns(needed), strict=True)
    children = [_prune(child, required) for child, required in inputs]
    if isinstance(node, Projection) and node.only_drops and node.schema.names == children[0].schema.names:
        return children[0]
    pruned = with_new_children(node, children)
    return _without_unread(pruned, needed) if pruned.carries_columns else pruned


def _without_unread(plan: LogicalPlan, needed: Set[str]) -> LogicalPlan:
    """Drop columns that only the node itself read, so that they are not carried further up."""
    if isinstance(plan, Join) and plan.kind is JoinKind.EXISTENCE:
        needed = needed | {plan.exists}
    read = [name for name in plan.schema.names if name in needed]
    if len(read) == len(plan.schema):
        return plan
    return Projection(plan, tuple(Named(plan.column(name), name) for name in read))
