"""How the actions on an accelerated query get their rows: in the driver, as Arrow from the workers, or from Spark's plan."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from traceback import clear_frames
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from kquery_spark.accelerate.execution.fallback import attempt
from kquery_spark.accelerate.execution.writer import with_sources
from kquery_spark.accelerate.planning.plan_query import Part, PlannedQuery
from kquery_spark.logical import Scan, walk_plan
from kquery_spark.run_control import LimitReached
from kquery_spark.runtime.spark.arrow_result import ArrowResult
from kquery_spark.runtime.spark.driver import DriverStage
from kquery_spark.spark_bridge.failures import unless_result_too_large
from kquery_spark.spark_bridge.lazy_dataframe import classic, text_of

R = TypeVar("R")

# Actions that Spark runs by the DataFrame's own physical plan, whose files are listed by the first of them; the others
# make a plan of their own each time.
_BY_OWN_PLAN = frozenset({"collect", "toArrow", "toPandas"})


@dataclass(frozen=True)
class PlacedQuery:
    """A planned query and where its stages run.

    parts: those that the engine runs. build: makes Spark's plan of the stages, when something asks for it; true: for an
    action, so tasks may share the last sort. driver: runs the last stage in the driver. result: brings all rows there.
    """

    planned: PlannedQuery
    parts: tuple[Part, ...]
    build: Callable[[bool], DataFrame]
    driver: DriverStage | None = None
    result: ArrowResult | None = None


class Execution:
    """The placement of a query as long as its tables are as they were, then that of the query planned again.

    original: the DataFrame that was accelerated, which Spark alone computes. cached: whether Spark keeps the rows, from
    which actions take them then. rescue: whether Spark may run a failed action again. renew: plans the query again: gives
    a placement, or what Spark runs.
    """

    def __init__(
        self, placement: PlacedQuery, rescue: bool, renew: Callable[[], PlacedQuery | DataFrame] | None
    ) -> None:
        self.original = placement.planned.frame
        self.placement = placement
        self.rescue = rescue
        self.cached = False
        self._exceeds_driver = False
        self._renew = renew
        self._base_frame: DataFrame | None = None
        self._own: PlacedQuery | None = None
        self._shared: DataFrame | None = None

    @property
    def base_frame(self) -> DataFrame:
        """See FrameRows; what is made of it finds an ordered result in one task."""
        if self._base_frame is None:
            self._base_frame = with_sources(self.placement.build(False), self.original)
        return self._base_frame

    def attempt(self, action: str, engine: Callable[[], R], spark: Callable[[], R]) -> R:
        """What ``engine`` gives, or ``spark`` where that may run again after a failure."""

        def looked() -> R:
            self._place(action)
            return engine()

        return attempt(action, looked, spark if self.rescue else None)

    def _place(self, action: str) -> None:
        """Look at tables when Spark does: the first action by the DataFrame's own plan settles it for others like it."""
        if self.placement.planned.moment is None or self.cached:
            return
        if action in _BY_OWN_PLAN and self._own is not None:
            if self.placement is not self._own:
                self.placement, self._shared = self._own, None
            return
        self.look_again()
        if action in _BY_OWN_PLAN:
            self._own = self.placement

    def look_again(self) -> None:
        """Before an action: plan again where tables of the catalog may have changed since that was done."""
        moment = self.placement.planned.moment
        if moment is None or self._renew is None or self.cached or not moment.has_passed():
            return
        renewed = self._renew()
        self._shared = None
        if isinstance(renewed, DataFrame):
            self.placement = PlacedQuery(self.placement.planned, (), lambda _: renewed)
        else:
            self.placement = replace(renewed, planned=replace(renewed.planned, frame=self.original))

    def table(self, rows: int | None = None) -> pa.Table | None:
        """The rows, or the first of them, made here; None where that is Spark's workers' work, or done and kept there."""
        return self._in_driver(lambda driver: driver.table(rows))

    def count(self) -> int | None:
        """How many rows there are, where they are counted here; None as for ``table``."""
        return self._in_driver(lambda driver: driver.count())

    def _in_driver(self, work: Callable[[DriverStage], R]) -> R | None:
        """What the driver's work gives; None where it is not the driver's, from now on if it turns out to be too much."""
        driver = self.placement.driver
        if driver is None or self.cached or self._exceeds_driver:
            return None
        try:
            result = unless_result_too_large(lambda: work(driver))
        except LimitReached as reached:
            clear_frames(reached.__traceback__)  # of what they hold
            result = None
        if result is None:
            self._exceeds_driver = True
            self.placement.parts[0].remember_exceeds_driver()
            self.placement = replace(self.placement, driver=None)
        return result

    def arrow_table(self) -> pa.Table | None:
        """All rows, made in the driver or sent there as Arrow; None where Spark's DataFrame gives them."""
        table, result = self.table(), self.placement.result
        if table is not None or result is None or self.cached:
            return table
        return unless_result_too_large(result.table)

    def frame(self, table: pa.Table | None = None) -> DataFrame:
        """The DataFrame whose rows an action takes, which keeps the order of the tasks.

        table: the rows, where they are in the driver.
        """
        spark = self.original.sparkSession
        if table is not None:
            # Arrow does not give Spark a struct that is NULL, of fields that are not
            with contextlib.suppress(pa.ArrowInvalid):
                return spark.createDataFrame(table, self.original.schema)
        if self.cached:
            return classic(self.base_frame)
        if self._shared is None:
            self._shared = self.placement.build(True)
        return self._shared

    def show_text(self, n: int, truncate: bool | int, vertical: bool) -> str:
        """See FrameRows."""
        counts = type(n) is int and n >= 0  # other arguments are Spark's to refuse

        def by_engine() -> str:
            return text_of(self.frame(self.table(n + 1) if counts else None), n, truncate, vertical)

        return self.attempt("show", by_engine, lambda: text_of(self.original, n, truncate, vertical))

    def frame_to_write(self) -> DataFrame:
        """The rows for a write, in which Spark sees the tables they come from."""
        self.look_again()
        return with_sources(self.frame(), self.original)

    def files(self) -> list[str]:
        """The files that the engine reads."""
        plans = [p.compiled.optimized for p in self.placement.parts]
        scans = [n for plan in plans for n in walk_plan(plan) if isinstance(n, Scan)]
        return [file.path for scan in scans for file in getattr(scan.source, "files", ())]
