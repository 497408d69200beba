"""The fast reject: decides from node names alone that the engine cannot win, without importing the plan.

It rejects plans that only scan, filter, and limit. Importing such a plan would take longer than some of these queries run.
Such a plan is not rejected in three cases, in which the import and the cost model have to decide: its files are small enough
for the driver; its rows may reach the driver faster as Arrow; or it is a top-k (a limit over a sort) over a large file.
"""

from __future__ import annotations

from typing import Any

from kquery_spark.frontends.catalyst.importer import ROW_WISE_CLASSES
from kquery_spark.spark_bridge.plan.plan_shape import has_subqueries, leaf_bytes, node_names
from kquery_spark.spark_bridge.session.bridge import Bridge

# Nodes for which ``decide`` never expects a gain, or that the importer declines.
_ROW_WISE_NODES = ROW_WISE_CLASSES | {
    *("LogicalRDD", "ExternalRDD", "InMemoryRelation", "DataSourceV2ScanRelation"),
    *("Generate", "LocalLimit", "GlobalLimit"),
}
# Nodes that may run in the driver if the files are small, because that takes less time than a Spark job. LocalRelation is
# not among them: Spark itself has its rows in the driver.
_IN_DRIVER = frozenset(
    {"LogicalRelation", "OneRowRelation", "Project", "Filter", "Union", "LocalLimit", "GlobalLimit", "Sort"}
)
# Nodes whose rows may reach the driver faster as Arrow.
_COLLECTABLE_AS_ARROW = frozenset({"LogicalRelation", "Project", "Filter"})


def cannot_gain(bridge: Bridge, plan: Any) -> bool:
    """True if the node names of an optimized plan show that the engine cannot save time with any node."""
    jvm = bridge.jvm
    if has_subqueries(jvm, plan):
        return False
    nodes = node_names(jvm, plan)
    is_row_wise = _ROW_WISE_NODES.issuperset(nodes)
    if not is_row_wise and not _is_top_k_of_a_file(nodes):
        return False  # a node may save time, so planning goes on
    if not _IN_DRIVER.issuperset(nodes):
        return True  # no gain is expected, and the driver cannot run the plan
    size = leaf_bytes(plan)
    config, costs = bridge.config_and_costs()
    max_bytes = config.driver_bytes if is_row_wise else config.max_driver_bytes
    if size < max_bytes * costs.file_bytes_per_decoded_byte:
        return False  # small enough for the driver
    if is_row_wise:
        return not _COLLECTABLE_AS_ARROW.issuperset(nodes)
    # a top-k over fewer bytes cannot save as much time as planning and a stage cost
    return size <= costs.min_top_k_bytes * costs.least_file_bytes_per_decoded_byte


def _is_top_k_of_a_file(nodes: list[str]) -> bool:
    """True if the nodes, from the top down, are a limit over a sort over a file scan."""
    if nodes[:2] != ["GlobalLimit", "LocalLimit"] or nodes[-1] != "LogicalRelation" or "Sort" not in nodes:
        return False
    sort = nodes.index("Sort")
    return {"Project"}.issuperset(nodes[2:sort]) and {"Project", "Filter"}.issuperset(nodes[sort + 1 : -1])
