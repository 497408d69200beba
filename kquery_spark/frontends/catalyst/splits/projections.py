"""Splits Project: computes the columns that the engine supports below those that fall back to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kquery_spark.frontends.catalyst.importer import may_do_more_than_scan
from kquery_spark.frontends.catalyst.splits.expressible import Expressible, attributes
from kquery_spark.frontends.catalyst.splits.split import SPLITS
from kquery_spark.spark_bridge.plan.plan_builder import PlanBuilder
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode


@SPLITS.handles("Project")
def split_project(
    node: CatalystNode, children: Sequence[Any], expressible: Expressible, builder: PlanBuilder
) -> Any | None:
    """``a + b AS c, declined(d)`` becomes ``c, declined(d)`` over ``a + b AS c, d``.

    The node is not split if the split would increase the number of columns that are sent from the engine to Spark.
    """
    if not may_do_more_than_scan(node.children[0]):
        return None
    items = node.trees("projectList")
    declined = [item for item in items if expressible.declines(item)]
    computed = [item for item in items if item not in declined and _computes(item)]
    if not declined or not computed:
        return None
    passed = attributes(*(item for item in items if item not in computed))
    if len(passed) + len(computed) > len(attributes(*items)):
        return None
    lower = [builder.node(column) for column in [*passed, *computed]]
    upper = [builder.node(item) for item in items]
    upper = [jvm.toAttribute() if item in computed else jvm for item, jvm in zip(items, upper, strict=True)]
    return builder.project(upper, builder.project(lower, children[0]))


def _computes(item: CatalystNode) -> bool:
    """Return whether an item is more than a column or a constant, with or without an alias."""
    return item.cls == "Alias" and item.children[0].cls != "AttributeReference" and bool(attributes(item))
