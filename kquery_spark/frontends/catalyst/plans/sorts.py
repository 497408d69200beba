"""Imports Sort."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import SortKey
from kquery_spark.frontends.catalyst.expressions import Translator
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.scope import PlanScope, check_key
from kquery_spark.logical import Sort
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

_DIRECTIONS = {"Ascending": True, "Descending": False}
_NULLS = {"NullsFirst": True, "NullsLast": False}


@PLANS.handles("Sort", family="sorts", partly="a total order; sorting each partition is not supported")
def sort(node: CatalystNode, context: Context) -> PlanScope:
    """ORDER BY."""
    if not node["global"]:
        raise Unsupported("sorting within Spark's partitions is not supported")
    child = context.subtree(node.children[0])
    return child.with_plan(
        Sort(child.plan, sort_keys(node.trees("order"), context.translator(child.columns)))
    )


def sort_keys(orders: tuple[CatalystNode, ...], translate: Translator) -> tuple[SortKey, ...]:
    """Translate SortOrder expressions to the engine's sort keys."""
    keys = []
    for order in orders:
        expr = translate(order.child("child"))
        check_key(expr.dtype)
        keys.append(SortKey(expr, _DIRECTIONS[order["direction"]], _NULLS[order["nullOrdering"]]))
    return tuple(keys)
