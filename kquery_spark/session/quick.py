"""The quick no: queries that only pass rows on, told from a glance at Spark's plan.

Reading such a plan whole would take longer than some of them run.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from kquery_spark.session.bridge import bridge
from kquery_spark.session.failures import SPARK_ERRORS

_TREE = "org.apache.spark.sql.catalyst.trees.TreeNode"
_PATTERN = "org.apache.spark.sql.catalyst.trees.TreePattern"
_SEQ = "scala.collection.immutable.Seq"
# What imports as a node that ``decide`` finds no gain in, or does not import at all.
_PASS_ROWS_ON = frozenset(
    {
        *("LogicalRelation", "LocalRelation", "OneRowRelation", "Range", "LogicalRDD", "ExternalRDD"),
        *("InMemoryRelation", "DataSourceV2ScanRelation"),
        *("Project", "Filter", "Union", "Generate", "LocalLimit", "GlobalLimit"),
    }
)


def only_passes_rows_on(frame: DataFrame) -> bool:
    """Whether no node of the optimized plan is one that the engine could win time with."""
    if frame.isStreaming:
        return False
    jvm = bridge(frame.sparkSession).jvm
    try:
        plan: Any = frame._jdf.queryExecution().optimizedPlan()
    except SPARK_ERRORS:  # planning meets it, too, and says so
        return False
    if plan.containsPattern(jvm.static(_PATTERN, "PLAN_EXPRESSION")):
        return False
    names = jvm.steps(
        "names of nodes",
        (_TREE, "map", "scala.Function1", jvm.getter(_TREE, "nodeName")),
        (_SEQ, "distinct"),
    ).apply(plan)
    return _PASS_ROWS_ON.issuperset(name.split(" ", 1)[0] for name in jvm.strings(names))
