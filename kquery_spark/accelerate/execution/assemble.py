"""The last step of planning: puts the chosen parts into Spark's plan, and creates the executors that actions use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from pyspark.sql import DataFrame

from kquery_spark.accelerate.execution.dataframe import EngineFrame
from kquery_spark.accelerate.execution.execution import Execution, PlacedQuery
from kquery_spark.accelerate.planning.decision import fits_driver, is_collectable_as_arrow
from kquery_spark.accelerate.planning.import_subtrees import Position, position_below
from kquery_spark.accelerate.planning.part import Part
from kquery_spark.accelerate.planning.planned_query import PlannedQuery
from kquery_spark.runtime.spark.driver import DriverExecutor
from kquery_spark.runtime.spark.executor import Payloads, SparkExecutor
from kquery_spark.runtime.spark.frames import payload_frame, to_dataframe
from kquery_spark.runtime.spark.metering import Metering
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.session.failures import warn_user


def assemble(
    planned: PlannedQuery,
    parts: Sequence[Part],
    rescue: bool = False,
    metrics: Metering | None = None,
    driver_only: bool = False,
    renew: Callable[[], PlacedQuery | DataFrame] | None = None,
) -> DataFrame:
    """Return the DataFrame of the planned query in which the engine runs the given parts, and Spark runs the others.

    rescue: if the engine fails, run the action again on Spark, unless it must not run twice. metrics: collects the metrics
    of operators. driver_only: only actions that collect rows use the engine (see ``Decision``). renew: plans the query again
    if its tables or current values may have changed.

    Two DataFrames are built lazily. The one with ``shared_sort=True`` is for actions and writes, which preserve the order of
    the tasks, so several tasks may share the last sort. The other one is for further Spark operations. These may
    reorder the rows of different tasks, so a single task sorts.
    """
    if not parts:
        return planned.frame

    frame = partial(_frame, planned, parts, rescue, metrics, driver_only)
    in_order, any_order = cache(partial(frame, shared_sort=True)), partial(frame, shared_sort=False)
    driver, payloads = None, None
    if metrics is None and planned.whole:
        (part,) = parts
        if fits_driver(planned, part):
            driver = DriverExecutor(
                planned.bridge, part.compiled, planned.frame.schema, lambda: part.threaded
            )
        if is_collectable_as_arrow(part) and not (driver_only and driver):
            payloads = _payloads(planned, part, rescue)
    placement = PlacedQuery(
        planned, tuple(parts), SparkExecutor(payloads), in_order, any_order, driver, driver_only
    )
    return EngineFrame(Execution(placement, rescue, renew))


def _frame(
    planned: PlannedQuery,
    parts: Sequence[Part],
    rescue: bool,
    metrics: Metering | None,
    driver_only: bool,
    shared_sort: bool,
) -> DataFrame:
    """Return the query's DataFrame with the engine's parts in it; the original one if Spark has to run the query."""
    if planned.snapshot is not None and not shared_sort:
        return planned.frame  # the plan may not be current when an action runs on the resulting DataFrame
    placed_parts = [p if shared_sort else p.for_unordered_consumer for p in parts]
    possible = {p.position: p for p in placed_parts if p is not None}
    if driver_only or len(possible) < len(placed_parts):
        return planned.frame
    frame = _built_or_warned(_Assembler(planned, possible, metrics).whole, rescue, "Spark runs the query")
    return planned.frame if frame is None else frame


def _payloads(planned: PlannedQuery, part: Part, rescue: bool) -> Payloads:
    """Return the rows of a whole query as Arrow payloads, which the driver collects faster than Spark's rows."""
    build = partial(
        payload_frame, planned.bridge, part.compiled.graph, planned.config, part.imported.broadcasts
    )
    frame = partial(_built_or_warned, build, rescue, "Spark collects the rows")
    return Payloads(frame, part.compiled.physical.schema, planned.frame.schema)


def _built_or_warned(build: Callable[[], DataFrame], rescue: bool, instead: str) -> DataFrame | None:
    """Build a DataFrame. If that fails and ``rescue`` is set, warn what happens ``instead`` and return None."""
    try:
        return build()
    except Exception as error:
        if not rescue:
            raise
        warn_user(
            f"the engine could not add its stages to Spark's plan, so {instead}: {type(error).__name__}: {error}"
        )
        return None


class _Assembler:
    """Puts parts into Spark's plan. Parts below a hand-over go into the plan by which Spark computes its rows."""

    def __init__(
        self, planned: PlannedQuery, parts: Mapping[Position, Part], metrics: Metering | None
    ) -> None:
        self._planned = planned
        self._parts = parts
        self._metrics = metrics

    def whole(self) -> DataFrame:
        """Return the DataFrame of the query."""
        whole = self._parts.get(())
        if whole is not None:
            return self.part(whole, self._planned.frame)
        return self._planned.bridge.frame(self.subtree(self._planned.plan, ()))

    def part(self, part: Part, original: DataFrame) -> DataFrame:
        """Return the DataFrame of one part, whose columns have the names, types, nullability and ids of ``original``."""
        planned = self._planned
        inputs = {}
        for handover in part.imported.inputs:
            position = position_below(part.node, part.position, handover.node)
            plan = self._catalyst(handover.node)
            if position is not None:  # None: in a subquery's plan, which has no parts of its own
                plan = self.subtree(plan, position)
            inputs[handover.key] = planned.bridge.frame(planned.bridge.columns(plan, handover.positions))
        index = [p.position for p in planned.parts].index(part.position)
        meter = self._metrics.part(index) if self._metrics is not None else None
        bridge = planned.bridge
        output = bridge.command_executed(original).output()
        return to_dataframe(
            bridge,
            part.compiled.graph,
            original.schema,
            planned.config,
            inputs,
            meter,
            output,
            part.imported.broadcasts,
        )

    def subtree(self, plan: Any, position: Position) -> Any:
        """Return Spark's plan at a position, with the highest parts in it replaced; ``part`` replaces those below them."""
        below = [p for p in self._parts if p[: len(position)] == position]
        # A position is a path of child indexes, so an ancestor's position is a prefix of it.
        highest = [p for p in below if not any(q != p and p[: len(q)] == q for q in below)]
        if not highest:
            return plan
        frames = {}
        for part_position in highest:
            part = self._parts[part_position]
            original = self._planned.bridge.frame(self._catalyst(part.node))
            frames[part_position[len(position) :]] = self.part(part, original)
        return self._planned.bridge.replaced(plan, frames)

    def _catalyst(self, node: CatalystNode) -> Any:
        assert self._planned.facts is not None
        return self._planned.facts.jvm_object(node)
