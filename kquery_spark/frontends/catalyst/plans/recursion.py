"""WITH RECURSIVE: Spark's UnionLoop, which consists of the first round and the plan of all later ones, and UnionLoopRef."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context, Declined
from kquery_spark.frontends.catalyst.plans.setops import positional
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.logical import LastRound, LogicalPlan, Recursion, RecursionLimits, walk_plan
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types.spark_json import arrow_type


@PLANS.handles("UnionLoop", family="recursion", partly="of files and rows of the query's own, in one task")
def union_loop(node: CatalystNode, context: Context) -> PlanScope:
    """Import all rounds, or none: rows that Spark hands over can be read only once, not once per round."""
    handed_over = len(context.inputs)
    anchor, step = (positional(context.subtree(child), context) for child in node.children)
    if len(context.inputs) > handed_over:
        raise Declined(*context.declined[-1])
    if any(below.calls_python for plan in (anchor, step) for below in walk_plan(plan)):
        raise Unsupported("a recursive query that calls Python functions is not supported")
    ids = [attribute["exprId"] for attribute in context.facts.output(node)]
    plan: LogicalPlan = Recursion(anchor, step, _key(node["id"]), _limits(node, context))
    return PlanScope(plan, tuple(zip(ids, plan.schema.names, strict=True)))


@PLANS.handles("UnionLoopRef", family="recursion")
def union_loop_ref(node: CatalystNode, context: Context) -> PlanScope:
    """Import the rows of the previous round."""
    if node["accumulated"]:
        raise Unsupported("a recursive query that reads the rows of all rounds is not supported")
    attributes = node.trees("output")
    zone = context.settings.time_zone
    fields = [pa.field(context.names.fresh(a["name"]), arrow_type(a["dataType"], zone)) for a in attributes]
    schema, key = pa.schema(fields), _key(node["loopId"])
    context.rounds.add(key)
    return PlanScope(
        LastRound(key, schema), tuple(zip((a["exprId"] for a in attributes), schema.names, strict=True))
    )


def _key(loop: int) -> str:
    return f"rounds-{loop}"


def _limits(node: CatalystNode, context: Context) -> RecursionLimits:
    """The limits of the query, or otherwise those of the session."""
    rounds, enough = node.optional("maxDepth"), node.optional("limit")
    if enough is not None and enough < 0:
        raise Unsupported("a recursive query below LIMIT ALL is not supported")
    if enough is not None and context.settings.recursion_rows is None:
        raise Unsupported("a recursive query with a LIMIT, but without a limit of its rows is not supported")
    if rounds is None:
        rounds = context.settings.recursion_levels
    return RecursionLimits(rounds, context.settings.recursion_rows, enough)
