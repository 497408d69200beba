"""Which columns of a result its query orders: those can be compared row by row."""

from __future__ import annotations

from kquery_spark.accelerate.planning.planned_query import PlannedQuery
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

# Nodes that pass rows on in the order in which they come.
_KEEP_ORDER = frozenset({"Project", "Filter", "GlobalLimit", "LocalLimit", "Offset", "SubqueryAlias"})
_CHANCE = frozenset(
    {"Rand", "Randn", "Uuid", "Shuffle", "MonotonicallyIncreasingID", "Sample", "RandStr", "Uniform"}
)


def ordered_columns(planned: PlannedQuery) -> tuple[int, ...]:
    """Positions of the output columns that the query's root sort orders by, as far as they are in the output.

    Keys after one that is not in the output are left out: their order depends on it.
    """
    node = planned.root
    if node is None or planned.facts is None:
        return ()
    output = [a["exprId"] for a in planned.facts.output(node)]
    while node.cls in _KEEP_ORDER:
        node = node.children[0]
    if node.cls != "Sort" or not node.fields.get("global"):
        return ()
    positions = []
    for order in node.trees("order"):
        key = order.children[0]
        if key.cls != "AttributeReference" or key["exprId"] not in output:
            break
        positions.append(output.index(key["exprId"]))
    return tuple(positions)


def chance(planned: PlannedQuery) -> str | None:
    """A sentence when the query itself leaves open which rows it gives; None when its answer is determined."""
    if planned.root is None:
        return None
    if any(node.cls in _CHANCE for node in planned.root.walk_all()):
        return "The query draws random values or samples, so two runs may differ."
    if any(node.fields.get("udfDeterministic") is False for node in planned.root.walk_all()):
        return "The query calls a nondeterministic function, so two runs may differ."
    if any(_limits(node) for node in planned.root.walk_all()):
        return "The query has a LIMIT; where its order leaves ties, or is missing, more than one answer is right."
    return None


def _limits(node: CatalystNode) -> bool:
    return node.is_plan and node.cls in ("GlobalLimit", "LocalLimit", "Offset", "Tail", "WindowGroupLimit")
