"""UNION ALL and DISTINCT; Spark's optimizer turns INTERSECT and EXCEPT into joins."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Named
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context, Declined
from kquery_spark.frontends.catalyst.scope import PlanScope, check_key
from kquery_spark.logical import Aggregate, Input, LogicalPlan, Projection, Union
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode


@PLANS.handles("Union", family="set operations", partly="by position")
def union(node: CatalystNode, context: Context) -> PlanScope:
    """Import UNION ALL: all inputs are projected to the same columns in the same order."""
    if node["byName"] or node["allowMissingCol"]:
        raise Unsupported("a union by name is not supported")
    scopes = [context.subtree_or_handover(child) for child in node.children]
    if all(isinstance(scope.plan, Input) for scope in scopes):
        raise Declined(*context.declined[-1])
    inputs = tuple(positional(scope, context) for scope in scopes)
    names = inputs[0].schema.names
    ids = [expr_id for expr_id, _ in scopes[0].output]
    plan = Union(inputs)
    if len(set(ids)) < len(ids):
        raise Unsupported("a union whose first input has a column twice is not supported")
    return PlanScope(plan, tuple(zip(ids, names, strict=True)))


def positional(scope: PlanScope, context: Context) -> LogicalPlan:
    """Project a scope's columns in Spark's order, each with a unique name."""
    names = list(scope.names())
    if scope.plan.schema.names == names:
        return scope.plan
    seen: set[str] = set()
    exprs = []
    for name in names:
        exprs.append(Named(scope.plan.column(name), context.names.fresh(name) if name in seen else name))
        seen.add(name)
    return Projection(scope.plan, tuple(exprs))


@PLANS.handles("Distinct", family="set operations")
def distinct(node: CatalystNode, context: Context) -> PlanScope:
    """Import DISTINCT as an Aggregate without aggregate functions."""
    child = context.subtree_or_handover(node.children[0])
    keys = dict.fromkeys(child.names())
    for name in keys:
        check_key(child.plan.column(name).dtype)
    return child.with_plan(Aggregate(child.plan, tuple(Named(child.plan.column(n), n) for n in keys), ()))
