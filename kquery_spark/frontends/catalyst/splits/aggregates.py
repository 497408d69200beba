"""Splits Aggregate: moves unsupported expressions into a Project above it (for results) or below it (for arguments)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kquery_spark.frontends.catalyst.splits.expressible import Expressible, attributes
from kquery_spark.frontends.catalyst.splits.split import SPLITS
from kquery_spark.functions.aggregate_registry import aggregate_for_catalyst
from kquery_spark.spark_bridge.plan.plan_builder import PlanBuilder
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode, aggregate_filter


@SPLITS.handles("Aggregate")
def split_results(
    node: CatalystNode, children: Sequence[Any], expressible: Expressible, builder: PlanBuilder
) -> Any | None:
    """``declined(sum(x))`` of groups becomes ``declined(s)`` over ``sum(x) AS s`` of groups."""
    keys, items = node.trees("groupingExpressions"), node.trees("aggregateExpressions")
    declined = [item for item in items if expressible.declines(item)]
    calls = [part for item in declined for part in item.walk() if part.cls == "AggregateExpression"]
    if not declined or any(expressible.declines(call) for call in calls) or not _are_columns(keys):
        return None
    if all(item.cls == "Alias" and item.children[0] in calls for item in declined):
        return None
    lower = {item: builder.node(item) for item in items if item not in declined}
    called = {call: builder.alias(builder.node(call), f"aggregate_{i}") for i, call in enumerate(calls)}
    given = {item["exprId"] for item in lower}
    passed = [builder.node(key) for key in keys if key["exprId"] not in given]
    below = builder.aggregate(
        [builder.node(key) for key in keys], [*lower.values(), *called.values(), *passed], children[0]
    )
    values = {call: alias.toAttribute() for call, alias in called.items()}
    upper = [lower[i].toAttribute() if i in lower else builder.replaced(i, values) for i in items]
    return builder.project(upper, below)


@SPLITS.handles("Aggregate")
def split_inputs(
    node: CatalystNode, children: Sequence[Any], expressible: Expressible, builder: PlanBuilder
) -> Any | None:
    """``sum(declined(x))`` becomes ``sum(d)`` over ``declined(x) AS d``."""
    keys, items = node.trees("groupingExpressions"), node.trees("aggregateExpressions")
    calls = [part for item in items for part in item.walk() if part.cls == "AggregateExpression"]
    if not _are_columns(keys) or not all(map(_is_known, calls)):
        return None
    arguments = [argument for call in calls for argument in call.children[0].children]
    declined = [argument for argument in arguments if expressible.declines(argument)]
    if not declined or not all(builder.is_deterministic(part) and attributes(part) for part in declined):
        return None
    computed = {part: builder.alias(builder.node(part), f"input_{i}") for i, part in enumerate(declined)}
    inside = {below for part in declined for below in part.walk()}
    read = {
        part["exprId"]: part
        for item in [*keys, *items]
        for part in item.walk()
        if part.cls == "AttributeReference" and part not in inside
    }
    project = builder.project([*map(builder.node, read.values()), *computed.values()], children[0])
    values = {part: alias.toAttribute() for part, alias in computed.items()}
    upper = [builder.replaced(item, values) for item in items]
    return builder.aggregate([builder.node(key) for key in keys], upper, project)


def _are_columns(keys: Sequence[CatalystNode]) -> bool:
    return all(key.cls == "AttributeReference" for key in keys)


def _is_known(call: CatalystNode) -> bool:
    """Return whether the engine has an aggregate function, and Spark evaluates its arguments for all rows."""
    function = call.children[0].cls
    return aggregate_filter(call) is None and aggregate_for_catalyst(function) is not None
