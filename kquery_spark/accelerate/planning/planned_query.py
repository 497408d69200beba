"""PlannedQuery: a Spark query, the parts of it that the engine can run, and why other nodes fall back to Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from kquery_spark.accelerate.planning.part import Part
from kquery_spark.cached_property import cached_property
from kquery_spark.config.cost import CostModel
from kquery_spark.config.engine import EngineConfig
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.relations.catalog_snapshot import CatalogSnapshot
from kquery_spark.spark_bridge.session.bridge import Bridge


@dataclass(frozen=True)
class PlannedQuery:
    """A Spark query and the parts of it that the engine can run.

    plan, root: Spark's optimized plan, as a JVM object and as a tree; None if it could not be read.
    reasons: class name and reason of each declined node, without duplicates. declined: the same with the nodes themselves.
    snapshot: detects that the plan is out of date, because catalog tables or current values have changed; None if
    the query has neither.
    worker_problem: why Spark's Python workers cannot run the engine; the query then has no parts.
    """

    frame: DataFrame
    bridge: Bridge
    config: EngineConfig
    cost: CostModel
    plan: Any
    facts: Facts | None
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
        outside = {n for h in part.imported.inputs for n in _plan_nodes(h.node)}
        inside += sum(1 for n in _plan_nodes(part.node) if n not in outside)
    return inside / total


def declined_query(frame: DataFrame, bridge: Bridge, config: EngineConfig, reason: str) -> PlannedQuery:
    """Return a query without parts: all of it falls back to Spark for one reason."""
    return PlannedQuery(frame, bridge, config, CostModel(), None, None, None, (), (("Query", reason),))


def _plan_nodes(node: CatalystNode) -> Iterator[CatalystNode]:
    """Yield the plan nodes of a subtree, including those of its subqueries."""
    return (n for n in node.walk_all() if n.is_plan)
