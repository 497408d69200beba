"""The choice of parts: decides whether nodes of Spark's plan are split in two before the parts are compiled.

If one expression of a node falls back to Spark, splitting the node lets the engine run the others. Example: if the engine
does not support ``f``, Spark computes only ``f(a)`` of ``SELECT f(a), length(b) FROM t``, in a Project above the engine's
part.
"""

from __future__ import annotations

from kquery_spark.accelerate.planning.import_subtrees import ImportedPlan, import_plan
from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.spark_query import SparkQuery
from kquery_spark.frontends.catalyst.splits import is_splittable, split_plan


def choose_parts(plan: ImportedPlan, query: SparkQuery) -> ImportedPlan:
    """Return the import to compile: of the plan as it is, or of the plan with nodes split.

    Nodes are split if one of them falls back to Spark, possibly because of only some of its expressions.
    """
    if not query.config.enabled or not any(is_splittable(node) for node, _ in plan.declined):
        return plan
    try:
        split = split_plan(plan.tree, query.bridge.jvm, query.settings)
        return plan if split is plan.tree else import_plan(query, split)
    except Unsupported:  # a node cannot be looked up or built
        return plan
