"""Chooses how an action on an accelerated query runs: in the driver, as Spark tasks, or after a failure on Spark alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from traceback import clear_frames
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from typing_extensions import override

from kquery_spark.accelerate.execution.actions import Actions, DriverActions, FrameActions, SparkActions
from kquery_spark.accelerate.execution.fallback import attempt
from kquery_spark.accelerate.execution.writer import WriteSource, with_sources
from kquery_spark.accelerate.observers import Place, row_count, watched_action
from kquery_spark.accelerate.planning.part import Part
from kquery_spark.accelerate.planning.planned_query import PlannedQuery, coverage
from kquery_spark.logical import Projection, Scan, walk_plan
from kquery_spark.run_control import LimitReached
from kquery_spark.runtime.executor import Executor
from kquery_spark.runtime.spark.driver import DriverBusy
from kquery_spark.runtime.spark.executor import SparkExecutor
from kquery_spark.spark_bridge.frames.lazy_dataframe import FrameRows, as_classic_frame
from kquery_spark.spark_bridge.session.bridge import is_stopped
from kquery_spark.spark_bridge.session.bypass import bypass
from kquery_spark.spark_bridge.ui.job_descriptions import job_description

R = TypeVar("R")

_MAX_DESCRIPTION_LENGTH = 200
# Actions that reuse the DataFrame's physical plan. Spark creates this plan, and lists its files, in the first such action.
# All other actions plan the query each time, so they see changes of the tables.
_PLAN_REUSING_ACTIONS = frozenset({"collect", "toArrow", "toPandas"})


@dataclass(frozen=True)
class PlacedQuery:
    """A planned query and its executors.

    parts: the parts that the engine runs. spark: collects the rows of Spark tasks. in_order: returns the lazy DataFrame of
    these tasks, which may share the last sort, so the consumer must preserve their order. any_order: builds the DataFrame
    for consumers that may not preserve it. driver: runs the query or its last stage in the driver; None if that may be too
    much work. driver_only: only actions that collect the rows use the engine, so Spark computes the rows of writes.
    """

    planned: PlannedQuery
    parts: tuple[Part, ...]
    spark: Executor
    in_order: Callable[[], DataFrame]
    any_order: Callable[[], DataFrame]
    driver: Executor | None = None
    driver_only: bool = False


class Execution(FrameRows):
    """Runs the actions of an accelerated query, and plans it again if its tables or current values may have changed.

    original: the DataFrame that was accelerated, which runs on Spark alone. cached: True if Spark caches the rows, which
    actions then read. rescue: True if Spark may run a failed action again. renew: plans the query again, and returns a
    placement, or the DataFrame for Spark if the engine does not run any part.
    """

    def __init__(
        self, placement: PlacedQuery, rescue: bool, renew: Callable[[], PlacedQuery | DataFrame] | None
    ) -> None:
        self.original = placement.planned.frame
        self.placement = placement
        self.rescue = rescue
        self.cached = False
        self._exceeds_driver = False
        self._found_driver_busy = False  # whether it was busy when an action last tried to run there
        self._renew = renew
        self._base_frame: DataFrame | None = None
        self._reused_placement: PlacedQuery | None = None

    @property
    @override
    def base_frame(self) -> DataFrame:
        """The DataFrame for further Spark operations.

        An ordered result is in one task, because these operations do not preserve the order of several tasks.
        """
        if self._base_frame is None:
            self._base_frame = with_sources(self.placement.any_order(), self.original)
        return self._base_frame

    def run(self, action: str, work: Callable[[Actions], R]) -> R:
        """Run a read-only action: in the driver, as Spark tasks, or on Spark alone if the engine fails."""
        return self.attempt(
            action, lambda: self._in_engine(work), lambda: work(FrameActions(lambda: self.original))
        )

    def attempt(self, action: str, engine: Callable[[], R], spark: Callable[[], R]) -> R:
        """Return the result of ``engine`` or, if it fails and the action may run again, of ``spark``.

        After ``spark.stop()``, only Spark runs the action, so that it raises its error. The engine in the driver
        could still return a result.
        """
        if is_stopped(self.original.sparkSession):
            return spark()

        def placed() -> R:
            self._renew_placement(action)
            return engine()

        return self._watched(action, placed, spark if self.rescue else None)

    def write(self, run: Callable[[], R], run_on_spark: Callable[[], R] | None) -> R:
        """Run a write by ``run``; if the engine fails, ``run_on_spark`` runs it again (None: it must not run twice)."""

        def described() -> R:
            with self._described_jobs() if self._place("write") == "tasks" else nullcontext():
                return run()

        return self._watched("write", described, run_on_spark)

    def _watched(self, action: str, engine: Callable[[], R], spark: Callable[[], R] | None) -> R:
        """Run ``attempt`` and emit an event when it ends."""
        planned = self.placement.planned
        with watched_action(action, planned.config, lambda: coverage(planned, self.placement.parts)) as watch:

            def fail(failure: str) -> None:
                watch.failure = failure

            try:
                result = attempt(action, engine, spark, fail)
                watch.rows = row_count(result)
            finally:
                watch.place = self._place(action) if watch.failure is None else "spark"
            planned.bridge.has_workers |= watch.place == "tasks"
            return result

    def _place(self, action: str) -> Place:
        """Return where the action ran if the engine did not fail."""
        placement = self.placement
        if self.cached or not placement.parts:
            return "spark"
        is_refused = self._exceeds_driver or self._found_driver_busy
        if action != "write" and placement.driver is not None and not is_refused:
            return "driver"
        # If the driver does not run a driver-only query, only actions that collect the rows as Arrow payloads gain.
        if placement.driver_only and (is_refused or action not in _PLAN_REUSING_ACTIONS):
            return "spark"
        return "tasks"

    def _in_engine(self, work: Callable[[Actions], R]) -> R:
        """Run an action in the driver if the query may run there; as Spark tasks if it exceeds the driver's limits.

        If the driver is busy, only this action runs as tasks.
        """
        driver = self.placement.driver
        if driver is not None and not self.cached and not self._exceeds_driver:
            self._found_driver_busy = False
            try:
                return work(DriverActions(driver, self.original, self.frame))
            except DriverBusy:
                self._found_driver_busy = True
            except LimitReached as reached:
                clear_frames(reached.__traceback__)  # its frames hold the rows that were computed so far
                self._exceeds_driver = True
                self.placement.parts[0].remember_exceeds_driver()
                self.placement = replace(self.placement, driver=None)
        if self.cached:
            return work(FrameActions(self.frame))
        with self._described_jobs():
            return work(SparkActions(self.placement.spark, self.original, self.placement.in_order))

    def _described_jobs(self) -> AbstractContextManager[None]:
        """Return a context in which the descriptions of Spark's jobs name the engine's operators."""
        steps = [step for part in self.placement.parts for step in _steps(part)]
        if not steps:  # the query was planned again, and Spark alone runs it
            return nullcontext()
        description = f"kquery: {', '.join(steps)}"[:_MAX_DESCRIPTION_LENGTH]
        return job_description(self.original.sparkSession.sparkContext, description)

    def _renew_placement(self, action: str) -> None:
        """Plan a stale query again: before each action, but only once for all actions in ``_PLAN_REUSING_ACTIONS``.

        Spark itself behaves like this: it reuses the physical plan of the first such action.
        """
        if self.placement.planned.snapshot is None or self.cached:
            return
        if action in _PLAN_REUSING_ACTIONS and self._reused_placement is not None:
            self.placement = self._reused_placement
            return
        self.replan_if_stale()
        if action in _PLAN_REUSING_ACTIONS:
            self._reused_placement = self.placement

    def keep_current_values(self) -> None:
        """Use the values of ``current_timestamp()`` from planning, however long it took: so does Spark."""
        if self.placement.planned.snapshot is not None:
            self.placement.planned.snapshot.keep_values()

    def replan_if_stale(self) -> None:
        """Plan the query again if its catalog tables or current values may have changed since planning."""
        snapshot = self.placement.planned.snapshot
        if snapshot is None or self._renew is None or self.cached or not snapshot.is_stale():
            return
        renewed = self._renew()
        if isinstance(renewed, DataFrame):
            self.placement = PlacedQuery(
                self.placement.planned, (), SparkExecutor(None), lambda: renewed, lambda: renewed
            )
        else:
            self.placement = replace(renewed, planned=replace(renewed.planned, frame=self.original))

    @override
    def arrow_table(self) -> pa.Table | None:
        return self._in_engine(lambda actions: actions.arrow_table())

    def frame(self) -> DataFrame:
        """Return the DataFrame of Spark tasks for an action, which must preserve the order of the tasks."""
        return as_classic_frame(self.base_frame) if self.cached else self.placement.in_order()

    @override
    def show_text(self, n: int, truncate: bool | int, vertical: bool) -> str:
        return self.run("show", lambda actions: actions.show_text(n, truncate, vertical))

    def frame_to_write(self) -> DataFrame:
        """Return the DataFrame to write. Its plan contains the tables that the query reads, so Spark protects them."""
        self.replan_if_stale()
        return with_sources(self.frame(), self.original)

    def write_source(self) -> WriteSource:
        """Return the source of the rows for writers of this query."""
        return WriteSource(self.original, self._rows_to_write, self.rescue, self.write)

    def _rows_to_write(self) -> tuple[DataFrame, list[str]]:
        """Return the DataFrame to write and the files that the engine reads for it."""
        with bypass():
            frame = self.frame_to_write()
        return frame, self.files()  # in this order: frame_to_write may plan the query again, with other files

    def files(self) -> list[str]:
        """Return the paths of the files that the engine reads."""
        plans = [p.compiled.optimized for p in self.placement.parts]
        scans = [n for plan in plans for n in walk_plan(plan) if isinstance(n, Scan)]
        return [file.path for scan in scans for file in getattr(scan.source, "files", ())]


def _steps(part: Part) -> Iterator[str]:
    """Yield descriptions of the operators of a part, from its scans up."""
    for node in reversed(list(walk_plan(part.compiled.optimized))):
        if isinstance(node, Scan):
            yield f"scan {node.table}"
        elif not isinstance(node, Projection):
            yield re.sub(r"(?<!^)(?=[A-Z])", " ", type(node).__name__).lower()
