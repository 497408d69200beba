"""The choice of parts: decides whether nodes of Spark's plan are split in two before the parts are compiled.

If one expression of a node falls back to Spark, splitting the node lets the engine run the others. Example: if the engine
does not support ``f``, Spark computes only ``f(a)`` of ``SELECT f(a), length(b) FROM t``, in a Project above the engine's
part.
"""

from __future__ import annotations

from kquery_spark.accelerate.planning.import_subtrees import ImportedPlan, ImportedSubtree, import_plan
from kquery_spark.config.cost import CostModel
from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.spark_query import SparkQuery
from kquery_spark.frontends.catalyst.splits import is_preaggregation, is_splittable, preaggregated, split_plan
from kquery_spark.logical import Aggregate, walk_plan
from kquery_spark.logical.projection import with_output
from kquery_spark.optimizer import optimize
from kquery_spark.optimizer.statistics import Estimator


def choose_parts(plan: ImportedPlan, query: SparkQuery, costs: CostModel) -> ImportedPlan:
    """Return the import to compile: of the plan as it is, with nodes split, or with preaggregations too.

    Nodes are split if one of them falls back to Spark, possibly because of only some of its expressions. A preaggregation
    groups rows by the columns that a declined expression reads, so that Spark evaluates the expression once per group. This
    additional aggregation pays only if the engine runs it and it has few groups, so the import with preaggregations is
    chosen only if this holds for all of them.
    """
    if not query.config.enabled or not any(is_splittable(node) for node, _ in plan.declined):
        return plan
    jvm, settings, best = query.bridge.jvm, query.settings, plan
    try:
        split = split_plan(plan.tree, jvm, settings)
        if split is not plan.tree:
            best = import_plan(query, split)
        grouped = preaggregated(split, jvm, settings)
        if grouped is not split:
            candidate = import_plan(query, grouped)
            if _preaggregates_well(candidate, query, costs):
                best = candidate
    except Unsupported:  # a node cannot be looked up or built, so the best plan so far stays as it is
        pass
    return best


def _preaggregates_well(plan: ImportedPlan, query: SparkQuery, costs: CostModel) -> bool:
    """True if every preaggregation of the plan is the root of an imported subtree and has few groups."""
    preaggregations = {node for node in plan.tree.root.walk() if is_preaggregation(node)}
    subtrees = [subtree for subtree in plan.subtrees if subtree.node in preaggregations]
    return len(subtrees) == len(preaggregations) and all(
        _rows_per_group(subtree, query) >= costs.preaggregated_group_rows for subtree in subtrees
    )


def _rows_per_group(subtree: ImportedSubtree, query: SparkQuery) -> float:
    """Return the estimated input rows of the highest Aggregate for each row of its output; 0 without an Aggregate."""
    plan = with_output(subtree.imported.plan, subtree.imported.output)
    optimized = optimize(plan, query.config.disabled_rules)
    top, estimate = (
        next((n for n in walk_plan(optimized) if isinstance(n, Aggregate)), None),
        Estimator().estimate,
    )
    return 0.0 if top is None else estimate(top.child).rows / max(estimate(top).rows, 1.0)
