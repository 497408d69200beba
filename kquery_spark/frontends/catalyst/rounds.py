"""Finds parts of a recursive query that cannot run by themselves."""

from __future__ import annotations

from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode


def reads_last_round(node: CatalystNode) -> bool:
    """Return whether a plan reads the last round of an enclosing recursive query, so that Spark cannot run it alone."""
    nodes = [below for below in node.walk_all() if below.cls in ("UnionLoop", "UnionLoopRef")]
    loops = {loop["id"] for loop in nodes if loop.cls == "UnionLoop"}
    return any(read["loopId"] not in loops for read in nodes if read.cls == "UnionLoopRef")
