"""Plans a Spark DataFrame: which parts the engine runs, and why the other nodes fall back to Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame

from kquery_spark.accelerate.planning.part import Part
from kquery_spark.accelerate.planning.plan_parts import plan_parts
from kquery_spark.config.cost import CostModel
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.splits import SplitPlan
from kquery_spark.runtime.spark.probe import worker_problem
from kquery_spark.spark_bridge.plan.plan_facts import FactFetcher
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.relations.catalog_snapshot import CatalogSnapshot, SparkPlan, spark_plan
from kquery_spark.spark_bridge.session.bridge import Bridge, bridge, check_frame
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS
from kquery_spark.spark_bridge.session.settings import session_settings


@dataclass(frozen=True)
class PlannedQuery:
    """A Spark query with the parts of it that the engine can run.

    plan, root: Spark's optimized plan, as a JVM object and as a tree; None if it could not be read.
    reasons: class name and reason of each declined node, without duplicates. declined: the same with the nodes themselves.
    snapshot: the state of the catalog tables that the query reads, which may change later; None if it reads none.
    worker_problem: why Spark's Python workers cannot run the engine; there are no parts then.
    """

    frame: DataFrame
    bridge: Bridge
    config: EngineConfig
    cost: CostModel
    plan: Any
    facts: FactFetcher | None
    root: CatalystNode | None
    parts: tuple[Part, ...]
    reasons: tuple[tuple[str, str], ...]
    declined: tuple[tuple[CatalystNode, str], ...] = ()
    snapshot: CatalogSnapshot | None = None
    worker_problem: str | None = None

    def reason_of(self, node: CatalystNode) -> str | None:
        """Return why a node falls back to Spark if the node itself is the cause, else None."""
        return next((reason for cause, reason in self.declined if cause is node), None)

    @property
    def whole(self) -> bool:
        """True if the engine runs the complete query, from its files to its result."""
        return len(self.parts) == 1 and self.parts[0].position == () and not self.parts[0].imported.inputs

    @cached_property
    def coverage(self) -> float:
        """Share of the optimized plan's nodes that the engine can run, 0 to 1."""
        return coverage(self, self.parts)


def coverage(planned: PlannedQuery, parts: Iterable[Part]) -> float:
    """Return the share of the optimized plan's nodes that lie inside of the given parts, 0 to 1."""
    if planned.root is None:
        return 0.0
    total = sum(1 for _ in _plan_nodes(planned.root))
    inside = 0
    for part in parts:
        outside = {id(n) for h in part.imported.inputs for n in _plan_nodes(h.node)}
        inside += sum(1 for n in _plan_nodes(part.node) if id(n) not in outside)
    return inside / total


def plan_frame(
    frame: DataFrame, query: SparkPlan | None = None, *, delta_prepares: bool = False
) -> PlannedQuery:
    """Plan a DataFrame for the engine. A query that the engine cannot run is no error: the result holds the reasons.

    query: Spark's plan of the DataFrame, if the caller has read it already.
    delta_prepares: let Delta's own rule list the files of its tables, rather than the engine's cached snapshots.
    """
    check_frame(frame, "kquery_spark")
    link = bridge(frame.sparkSession)
    config, costs = link.config_and_costs()
    if frame.isStreaming:
        return _declined_query(frame, link, config, "streaming queries are not supported")
    try:
        query = query or spark_plan(frame, link, delta_prepares=delta_prepares)
    except SPARK_ERRORS as error:  # Spark raises the error again when the query runs
        first = str(error).strip().partition("\n")[0]
        return _declined_query(frame, link, config, f"Spark cannot plan this query itself: {first}")
    planned = _planned(frame, link, query, config, costs)
    if query.delta_snapshots is not None and planned.parts and not planned.whole:
        # Spark reads a part of the query itself. With Delta's rule, both read the same snapshots.
        return plan_frame(frame, delta_prepares=True)
    return planned


def _planned(
    frame: DataFrame, link: Bridge, query: SparkPlan, config: EngineConfig, costs: CostModel
) -> PlannedQuery:
    settings = session_settings(link.conf, link.jvm)
    plan = query.optimized
    facts = FactFetcher(link.jvm, plan)
    try:
        root = facts.parse()
    except Unsupported as error:
        return _declined_query(frame, link, config, error.reason)
    planned = plan_parts(SplitPlan(plan, facts, root), link, settings, config, query.delta_snapshots)
    parts, declined = planned.parts, planned.declined
    problem = worker_problem(link) if parts and config.enabled else None
    if problem is not None:
        return replace(_declined_query(frame, link, config, problem), worker_problem=problem)
    reasons = tuple(dict.fromkeys((node.cls, reason) for node, reason in declined))
    snapshot = _end_planning(query) if parts else None
    return PlannedQuery(
        frame,
        link,
        config,
        costs,
        planned.split.plan,
        planned.split.facts,
        planned.split.root,
        tuple(parts),
        reasons,
        tuple(declined),
        snapshot,
    )


def _end_planning(query: SparkPlan) -> CatalogSnapshot | None:
    """Finish the catalog snapshot: tables that change from now on are detected when an action runs."""
    if query.snapshot is not None:
        query.snapshot.end_planning(query.optimized)
    return query.snapshot


def _declined_query(frame: DataFrame, link: Bridge, config: EngineConfig, reason: str) -> PlannedQuery:
    """Return a query without parts: all of it falls back to Spark for one reason."""
    return PlannedQuery(frame, link, config, CostModel(), None, None, None, (), (("Query", reason),))


def _plan_nodes(node: CatalystNode) -> Iterator[CatalystNode]:
    """Yield the plan nodes of a subtree, including those of its subqueries."""
    return (n for n in node.walk_all() if n.is_plan)
