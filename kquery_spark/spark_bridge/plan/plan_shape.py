"""The shape of a Spark plan: the names of its nodes and the bytes that it reads, without importing it."""

from __future__ import annotations

from typing import Any

from kquery_spark.spark_bridge.jvm.calls import Jvm

TREE = "org.apache.spark.sql.catalyst.trees.TreeNode"
_PATTERN = "org.apache.spark.sql.catalyst.trees.TreePattern"


def has_subqueries(jvm: Jvm, plan: Any) -> bool:
    """Return whether an expression of the plan contains a subquery."""
    return bool(plan.containsPattern(jvm.static(_PATTERN, "PLAN_EXPRESSION")))


def has_current_values(jvm: Jvm, plan: Any) -> bool:
    """Return whether the plan, or a subquery in it, calls ``current_timestamp()``, ``current_user()`` or a similar function.

    Spark's optimizer replaces these by their current values, so an optimized plan has none.
    """
    return bool(plan.containsPattern(jvm.static(_PATTERN, "CURRENT_LIKE")))


def node_names(jvm: Jvm, plan: Any) -> list[str]:
    """The first word of each node's name, parents first, without the nodes of subqueries."""
    names = jvm.steps("names of nodes", (TREE, "map", "scala.Function1", jvm.getter(TREE, "nodeName")))
    return [name.split(" ", 1)[0] for name in jvm.strings(names.apply(plan))]


def node_class_names(jvm: Jvm, plan: Any) -> list[str]:
    """The name of each node's class, parents first, without the nodes of subqueries."""
    names = jvm.steps("classes of nodes", (TREE, "map", "scala.Function1", jvm.class_name_getter))
    return jvm.strings(names.apply(plan))


def leaf_bytes(plan: Any) -> int:
    """The total size of all leaves of a plan by Spark's statistics, in bytes."""
    leaves = plan.collectLeaves()
    return sum(int(str(leaves.apply(i).stats().sizeInBytes())) for i in range(leaves.size()))
