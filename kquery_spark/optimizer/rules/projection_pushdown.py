"""Column pruning: each node outputs only the columns that are needed above it, and each scan reads only these."""

from __future__ import annotations

from collections.abc import Set

from kquery_spark.expr import Named
from kquery_spark.logical import Join, LogicalPlan, Projection
from kquery_spark.logical.join import JoinKind
from kquery_spark.logical.plan import with_new_children


def projection_pushdown(plan: LogicalPlan) -> LogicalPlan:
    """Walk down with the set of needed columns, starting with all columns of the root:

        Aggregate: MAX(#a)                     Aggregate: MAX(#a)
          Filter: #b > 1                  ->     Projection: #a                            -- drops #b
            Scan: t; projection=None               Filter: #b > 1
                                                     Scan: t; projection=[a, b]

    The projection is added above nodes that output columns of their input even if nothing reads them (``carries_columns``).
    Without it, every join and exchange above would copy ``b``.
    """
    return _prune(plan, plan.column_names)


def _prune(plan: LogicalPlan, needed: Set[str]) -> LogicalPlan:
    """Prune the plan to the ``needed`` columns."""
    node = plan.prune_columns(needed)
    inputs = zip(node.children, node.required_columns(needed), strict=True)
    children = [_prune(child, required) for child, required in inputs]
    # After pruning, a projection often selects all columns of its child in the same order: then it is not needed.
    if isinstance(node, Projection) and node.only_drops and node.schema.names == children[0].schema.names:
        return children[0]
    pruned = with_new_children(node, children)
    return _drop_unread(pruned, needed) if pruned.carries_columns else pruned


def _drop_unread(plan: LogicalPlan, needed: Set[str]) -> LogicalPlan:
    """Drop the columns that only the node itself reads, so that they are not carried further up."""
    if isinstance(plan, Join) and plan.kind is JoinKind.EXISTENCE:
        needed = needed | {plan.exists}
    read = [name for name in plan.schema.names if name in needed]
    if len(read) == len(plan.schema):
        return plan
    return Projection(plan, tuple(Named(plan.column(name), name) for name in read))
