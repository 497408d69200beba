"""The fast reject: scans, filters and small limits, rejected from node names alone.

The full import of such a plan would take longer than some of these queries run.
"""

from __future__ import annotations

from typing import Any

from kquery_spark.frontends.catalyst.importer import PASS_ROWS_ON
from kquery_spark.spark_bridge.plan.plan_shape import has_subqueries, leaf_bytes, node_names
from kquery_spark.spark_bridge.session.bridge import Bridge

# What imports as a node that ``decide`` finds no gain in, or does not import at all.
_PASS_ROWS_ON = PASS_ROWS_ON | {
    *("LogicalRDD", "ExternalRDD", "InMemoryRelation", "DataSourceV2ScanRelation"),
    *("Generate", "LocalLimit", "GlobalLimit"),
}
# Of these, and of a sort, what may be work of the driver where files are small: it takes it less time than a job of Spark.
# Not LocalRelation, of which Spark itself has the rows in the driver.
_IN_DRIVER = frozenset(
    {"LogicalRelation", "OneRowRelation", "Project", "Filter", "Union", "LocalLimit", "GlobalLimit", "Sort"}
)
# Of these what may come to the driver faster as Arrow.
_COLLECTABLE_AS_ARROW = frozenset({"LogicalRelation", "Project", "Filter"})
_FILE_BYTES_PER_DECODED_BYTE = 0.75  # bytes of files are more when decoded
_LEAST_FILE_BYTES_PER_DECODED_BYTE = 0.27  # and mostly less than four times as many


def nothing_to_win(link: Bridge, plan: Any) -> bool:
    """Whether the node names of an optimized plan show that the engine cannot save time on any node."""
    jvm = link.jvm
    if has_subqueries(jvm, plan):
        return False
    nodes = node_names(jvm, plan)
    passed = _PASS_ROWS_ON.issuperset(nodes)
    if not passed and not _first_of_a_file(nodes):
        return False
    if not _IN_DRIVER.issuperset(nodes):
        return True
    size = leaf_bytes(plan)
    config, costs = link.config_and_costs()
    if size < config.driver_bytes * _FILE_BYTES_PER_DECODED_BYTE:
        return False
    if passed:
        return not _COLLECTABLE_AS_ARROW.issuperset(nodes)
    return size <= costs.least_bytes_of_top_k * _LEAST_FILE_BYTES_PER_DECODED_BYTE


def _first_of_a_file(nodes: list[str]) -> bool:
    """Whether the plan's nodes, top down, are a limit over a sort over files."""
    if nodes[:2] != ["GlobalLimit", "LocalLimit"] or nodes[-1] != "LogicalRelation" or "Sort" not in nodes:
        return False
    sort = nodes.index("Sort")
    return {"Project"}.issuperset(nodes[2:sort]) and {"Project", "Filter"}.issuperset(nodes[sort + 1 : -1])
