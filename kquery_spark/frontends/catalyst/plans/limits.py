"""LIMIT and OFFSET."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.logical import Limit
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode


@PLANS.handles("GlobalLimit", family="limits")
def global_limit(node: CatalystNode, context: Context) -> PlanScope:
    """LIMIT n [OFFSET k], which Spark writes as GlobalLimit n over Offset k over LocalLimit n + k."""
    count, offset, below = _number(node, "limitExpr"), 0, node.children[0]
    if below.cls == "Offset":
        offset, below = _number(below, "offsetExpr"), below.children[0]
    if below.cls == "LocalLimit" and _number(below, "limitExpr") >= count + offset:
        below = below.children[0]
    child = context.subtree(below)
    return child.with_plan(Limit(child.plan, count, offset))


@PLANS.handles("LocalLimit", family="limits")
def local_limit(node: CatalystNode, context: Context) -> PlanScope:
    """A limit per partition, which Spark pushes below a GlobalLimit; one limit for all rows is enough there."""
    child = context.subtree(node.children[0])
    return child.with_plan(Limit(child.plan, _number(node, "limitExpr")))


@PLANS.handles("Offset", family="limits")
def offset(node: CatalystNode, context: Context) -> PlanScope:
    """OFFSET without LIMIT."""
    child = context.subtree(node.children[0])
    return child.with_plan(Limit(child.plan, None, _number(node, "offsetExpr")))


def _number(node: CatalystNode, field: str) -> int:
    expr = node.tree(field)
    if expr.cls != "Literal" or expr.fields.get("value") is None:
        raise Unsupported(f"the {field} of {node.cls} is not a constant")
    return int(expr["value"])
