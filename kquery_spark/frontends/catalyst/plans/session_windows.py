"""Aggregates by session windows. In Spark's plan each row has its own window; Spark's physical operators merge them."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.expressions.aggregate_functions import takes_rows_in_order
from kquery_spark.frontends.catalyst.plans.context import Context
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

_SESSION = "spark.sessionWindow"


def session_key(node: CatalystNode, context: Context) -> CatalystNode | None:
    """The grouping expression of an Aggregate that is a session window; None if there is none.

    Spark marks it in its metadata, which the plan's JSON lacks, so a struct of two times is looked up in the JVM.
    """
    for index, key in enumerate(node.trees("groupingExpressions")):
        if key.cls in ("AttributeReference", "Alias") and _is_like_session(key, context):
            expression = context.facts.jvm_object(node).groupingExpressions().apply(index)
            if expression.metadata().contains(_SESSION):
                return key
    return None


def _is_like_session(key: CatalystNode, context: Context) -> bool:
    if key.cls == "Alias":
        return True
    dtype = key["dataType"]
    fields = dtype.get("fields", ()) if isinstance(dtype, dict) else ()
    return [field["name"] for field in fields] == ["start", "end"]


def check_session(node: CatalystNode, key: CatalystNode) -> None:
    """Raise Unsupported for an Aggregate by session windows whose result depends on more than its groups."""
    below = node.children[0]
    while below.cls == "Filter":
        below = below.children[0]
    computed: set[int] = set()
    if below.cls == "Project":
        computed = {item["exprId"] for item in below.trees("projectList") if item.cls == "Alias"}
    elif below.cls == "LocalRelation":
        computed = {attribute["exprId"] for attribute in below.trees("output")}
    if key.cls != "AttributeReference" or key["exprId"] not in computed:
        raise Unsupported(
            "session windows that are not computed right below their Aggregate are not supported"
        )
    for part in (part for item in node.trees("aggregateExpressions") for part in item.walk()):
        if part.cls == "AggregateExpression":
            if part["isDistinct"]:
                raise Unsupported("DISTINCT by session windows is not supported")
            if takes_rows_in_order(part.child("aggregateFunction")):
                raise Unsupported(
                    f"{part.child('aggregateFunction').cls} by session windows is not supported"
                )
