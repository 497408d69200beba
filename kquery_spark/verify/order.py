"""Finds the columns that a query orders by, which can be compared row by row, and queries with several right answers."""

from __future__ import annotations

from kquery_spark.accelerate.planning.planned_query import PlannedQuery
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

# Nodes that preserve the order of their input.
_KEEP_ORDER = frozenset({"Project", "Filter", "GlobalLimit", "LocalLimit", "Offset", "SubqueryAlias"})
_NONDETERMINISTIC_CLASSES = frozenset(
    {"Rand", "Randn", "Uuid", "Shuffle", "MonotonicallyIncreasingID", "Sample", "RandStr", "Uniform"}
)


def ordered_columns(planned: PlannedQuery) -> tuple[int, ...]:
    """Return the positions of the output columns that the sort at the query's root orders by.

    The list ends before the first sort key that is not an output column, because the order of later keys depends on it.
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


def ambiguity_reason(planned: PlannedQuery) -> str | None:
    """Return a sentence that says why the query may have several right answers; None if it has only one."""
    if planned.root is None:
        return None
    if any(node.cls in _NONDETERMINISTIC_CLASSES for node in planned.root.walk_all()):
        return "The query uses random values or samples, so two runs may differ."
    if any(node.fields.get("udfDeterministic") is False for node in planned.root.walk_all()):
        return "The query calls a nondeterministic function, so two runs may differ."
    if any(_limits(node) for node in planned.root.walk_all()):
        return "The query has a LIMIT. Unless its ORDER BY is total, several answers are correct."
    return None


def _limits(node: CatalystNode) -> bool:
    return node.is_plan and node.cls in ("GlobalLimit", "LocalLimit", "Offset", "Tail", "WindowGroupLimit")
