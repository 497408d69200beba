"""The steps of planning, which turn a Spark DataFrame into a DataFrame that runs in the engine.

read plan -> fast reject -> import -> choose parts -> compile -> decide -> assemble
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame

from kquery_spark.accelerate.execution.assemble import assemble
from kquery_spark.accelerate.execution.execution import PlacedQuery
from kquery_spark.accelerate.options import Fallback, When
from kquery_spark.accelerate.planning.choose_parts import choose_parts
from kquery_spark.accelerate.planning.compile_parts import compile_parts
from kquery_spark.accelerate.planning.decision import Decision, decide
from kquery_spark.accelerate.planning.fast_reject import cannot_gain
from kquery_spark.accelerate.planning.import_subtrees import import_plan
from kquery_spark.accelerate.planning.part import Part
from kquery_spark.accelerate.planning.planned_query import PlannedQuery, declined_query
from kquery_spark.accelerate.planning.read_plan import OptimizedFrame, read_plan
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.spark_query import SparkQuery
from kquery_spark.runtime.spark.probe import worker_problem, workers_have_hdfs_client
from kquery_spark.spark_bridge.relations.catalog_snapshot import CatalogSnapshot, SparkPlan

Renew = Callable[[], PlacedQuery | DataFrame]
"""Plans a query again because tables or current values may have changed; returns a DataFrame if Spark runs the query."""


@dataclass(frozen=True)
class PlanningResult:
    """The DataFrame that ``kquery_plan`` returns, with the results of the planning steps.

    config: the settings, or None if planning ended before it read them. planned: None after a fast reject. chosen: the parts
    that the engine runs, a subset of the parts with a decision. failure: why the engine could not plan the query, or None.
    """

    frame: DataFrame
    config: EngineConfig | None = None
    planned: PlannedQuery | None = None
    decisions: tuple[Decision, ...] = ()
    chosen: tuple[Part, ...] = ()
    failure: str | None = None


def plan_and_assemble(frame: DataFrame, fallback: Fallback, when: When, renew: Renew) -> PlanningResult:
    """Run all steps. The options are those of ``kquery_plan``; with ``fallback="error"``, it may raise Unsupported."""
    optimized = read_plan(frame)
    if when == "auto" and fallback == "spark" and optimized.plan is not None:
        if cannot_gain(optimized.bridge, optimized.plan.optimized):
            return PlanningResult(frame, optimized.bridge.last_config)
    planned = _plan_parts(optimized)
    if not planned.config.enabled:
        return PlanningResult(frame, planned.config, planned)
    if fallback == "error":
        _require_whole(planned)
    decisions = tuple(decide(planned, part) for part in planned.parts)
    chosen, driver_only = _parts_to_run(planned, decisions, when)
    fast = assemble(planned, chosen, rescue=fallback == "spark", driver_only=driver_only, renew=renew)
    return PlanningResult(fast, planned.config, planned, decisions, tuple(chosen))


def plan_frame(frame: DataFrame) -> PlannedQuery:
    """Run the steps that find the parts which the engine can run, whether or not it should win.

    A query that the engine cannot run raises nothing: the result holds the reasons.
    """
    return _plan_parts(read_plan(frame))


def _plan_parts(optimized: OptimizedFrame) -> PlannedQuery:
    """Find the parts of a query, in a plan for which the engine and Spark read the same files."""
    planned = _find_parts(optimized)
    if optimized.plan is None or optimized.plan.delta_snapshots is None or not planned.parts or planned.whole:
        return planned
    # Spark reads a part of the query itself. With Delta's rule, both read the same snapshots.
    return _find_parts(read_plan(optimized.frame, delta_prepares=True))


def _find_parts(optimized: OptimizedFrame) -> PlannedQuery:
    """Import, choose parts, and compile."""
    frame, bridge = optimized.frame, optimized.bridge
    config, costs = bridge.config_and_costs()
    if optimized.plan is None:
        return declined_query(frame, bridge, config, optimized.problem or "")
    try:
        query = SparkQuery.parse(optimized.plan, bridge, config, partial(workers_have_hdfs_client, bridge))
    except Unsupported as error:
        return declined_query(frame, bridge, config, error.reason)
    imported = import_plan(query, query.tree)
    chosen = choose_parts(imported, query)
    compiled = compile_parts(chosen, config, costs)
    parts, declined = compiled.parts, compiled.declined
    problem = worker_problem(bridge) if parts and config.enabled else None
    if problem is not None:
        return replace(declined_query(frame, bridge, config, problem), worker_problem=problem)
    reasons = tuple(dict.fromkeys((node.cls, reason) for node, reason in declined))
    snapshot = _end_planning(optimized.plan) if parts else None
    tree = chosen.tree
    return PlannedQuery(
        frame, bridge, config, costs, tree.plan, tree.facts, tree.root, parts, reasons, declined, snapshot
    )


def _end_planning(plan: SparkPlan) -> CatalogSnapshot | None:
    """Finish the catalog snapshot: changes from now on are detected when an action runs."""
    if plan.snapshot is not None:
        plan.snapshot.end_planning(plan.optimized)
    return plan.snapshot


def _require_whole(planned: PlannedQuery) -> None:
    if planned.whole and not planned.reasons:
        return
    node, reason = (
        planned.reasons[0] if planned.reasons else ("Query", "a part of the query falls back to Spark")
    )
    raise Unsupported(f"{node}: {reason}")


def _parts_to_run(
    planned: PlannedQuery, decisions: Sequence[Decision], when: When
) -> tuple[list[Part], bool]:
    """Return the parts to run in the engine, and whether only actions that collect rows in the driver gain from them."""
    if when == "always":
        return list(planned.parts), False
    chosen = [part for part, decision in zip(planned.parts, decisions, strict=True) if decision.accelerate]
    return chosen, when == "auto" and any(decision.driver_only for decision in decisions)
