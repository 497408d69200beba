"""Chooses whether to split nodes of Spark's plan before its parts are found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from kquery_spark.accelerate.planning.part import Part
from kquery_spark.accelerate.planning.part_search import DeclinedNode, find_parts
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.importer import Importer
from kquery_spark.frontends.catalyst.splits import (
    SplitPlan,
    is_preaggregation,
    is_splittable,
    preaggregated,
    split_plan,
)
from kquery_spark.logical import Aggregate, walk_plan
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.optimizer.statistics import Estimator
from kquery_spark.runtime.spark.probe import workers_have_hdfs_client
from kquery_spark.sources.base import Source
from kquery_spark.spark_bridge.python.functions import PythonFunctions
from kquery_spark.spark_bridge.relations.delta_snapshots import DeltaSnapshots
from kquery_spark.spark_bridge.relations.leaves import RelationReader
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.settings import SessionSettings

_MIN_ROWS_PER_GROUP = 8.0  # of a preaggregation, which costs more than it saves with fewer


@dataclass(frozen=True)
class PlanParts:
    """Spark's plan, as it is or with nodes split, the parts that the engine runs, and why other nodes fall back to Spark."""

    split: SplitPlan
    parts: list[Part]
    declined: list[DeclinedNode]

    @property
    def preaggregates_well(self) -> bool:
        """Whether the engine runs every preaggregation of the plan, and each has few groups."""
        well = {part.node for part in self.parts if _rows_per_group(part) >= _MIN_ROWS_PER_GROUP}
        return all(node in well for node in self.split.root.walk() if is_preaggregation(node))


def plan_parts(
    plan: SplitPlan,
    link: Bridge,
    settings: SessionSettings,
    config: EngineConfig,
    delta_snapshots: DeltaSnapshots | None = None,
) -> PlanParts:
    """The parts of the plan, with each node split in two that falls back to Spark for some of its expressions only.

    delta_snapshots: those of the plan's Delta tables, where Delta did not choose them.
    """
    sources: NodeMap[Source] = NodeMap()

    def parts_of(plan: SplitPlan) -> PlanParts:
        relations = RelationReader(
            plan.facts,
            link.jvm,
            settings.time_zone,
            link.hadoop_configuration,
            delta_snapshots,
            partial(workers_have_hdfs_client, link),
            config.parallelism,
        )
        importer = Importer(plan.facts, relations, settings, sources, PythonFunctions(plan.facts, link))
        return PlanParts(plan, *find_parts(plan.root, importer, config))

    best = parts_of(plan)
    if not config.enabled or not any(is_splittable(node) for node, _ in best.declined):
        return best
    try:
        split = split_plan(plan, link.jvm, settings)
        if split is not plan:
            best = parts_of(split)
        grouped = preaggregated(split, link.jvm, settings)
        if grouped is not split and (candidate := parts_of(grouped)).preaggregates_well:
            best = candidate
    except Unsupported:  # a node cannot be looked up or built, so the plan stays as it is
        pass
    return best


def _rows_per_group(part: Part) -> float:
    """Estimated input rows of a part's highest Aggregate for each row of its output; 0 without an Aggregate."""
    aggregates = (n for n in walk_plan(part.compiled.optimized) if isinstance(n, Aggregate))
    top, estimate = next(aggregates, None), Estimator().estimate
    return 0.0 if top is None else estimate(top.child).rows / max(estimate(top).rows, 1.0)
