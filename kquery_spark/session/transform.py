"""``df.transform(kquery_plan)``: a Spark DataFrame in, the same DataFrame run by the engine out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from pyspark.sql import DataFrame

from kquery_spark.errors import ConfigError, Unsupported
from kquery_spark.frontends.catalyst.tree import CatalystNode
from kquery_spark.runtime.spark.arrow_result import ArrowResult
from kquery_spark.runtime.spark.driver import DriverStage
from kquery_spark.runtime.spark.frames import shipped, to_dataframe
from kquery_spark.runtime.spark.metering import Metering
from kquery_spark.session.bridge import bridge, check_frame
from kquery_spark.session.decision import decide, fits_driver, has_columns
from kquery_spark.session.engine_frame import EngineFrame, execution_of
from kquery_spark.session.execution import Execution, Placement
from kquery_spark.session.failures import SPARK_ERRORS, warn_user
from kquery_spark.session.garbage import collection_paused
from kquery_spark.session.planning import Part, PlannedQuery, Position, plan_frame, position_below
from kquery_spark.session.quick import nothing_to_win
from kquery_spark.session.tables import again, spark_plan

Fallback = Literal["spark", "error"]
When = Literal["auto", "always", "never"]


def kquery_plan(frame: DataFrame, *, fallback: Fallback = "spark", when: When = "auto") -> DataFrame:
    """The same query with as much of it as possible run by the engine.

    frame: any batch DataFrame of a classic Spark session. Returns a lazy DataFrame of exactly its schema and rows.
    fallback: "spark" leaves to Spark what the engine declines, and runs a read-only action or a write to files again on
    Spark when the engine fails (FallbackWarning says why); "error" raises Unsupported with the first reason, and the
    engine's errors.
    when: "auto" uses the engine where it should win, "always" wherever it can, "never" gives ``frame`` back.
    No job of the query runs here; file footers are read for planning. On a cluster the first call asks Spark's Python
    workers for their versions, in a job of its own.
    """
    check_options(fallback, when)
    check_frame(frame, "kquery_plan")
    if when == "never":
        return frame
    made = execution_of(frame)
    if made is not None:
        frame = made.original
    try:
        with collection_paused():
            return _planned(frame, fallback, when)
    except ConfigError:
        raise
    except Exception as error:
        if fallback == "error":
            raise
        reason = error.reason if isinstance(error, Unsupported) else f"{type(error).__name__}: {error}"
        warn_user(f"the engine could not plan the query, so Spark runs it: {reason}")
        return frame


def _planned(frame: DataFrame, fallback: Fallback, when: When) -> DataFrame:
    link = bridge(frame.sparkSession)
    query = None
    if when == "auto" and fallback == "spark" and not frame.isStreaming:
        with contextlib.suppress(*SPARK_ERRORS):  # planning meets it, too, and says so
            query = spark_plan(frame, link)
        if query is not None and nothing_to_win(link, query.optimized):
            return frame
    planned = plan_frame(frame, query)
    if not planned.config.enabled:
        return frame
    if fallback == "error":
        _require_whole(planned)
    problem = planned.worker_problem
    if problem is not None and link.warns_first_time(problem):
        warn_user(f"Spark runs the queries of this session: {problem}")
    decisions = [(p, decide(planned, p)) for p in planned.parts]
    chosen = [p for p, d in decisions if when == "always" or d.accelerate]
    little = when == "auto" and any(d.driver_only for _, d in decisions)

    def renew() -> Placement | DataFrame:
        found = kquery_plan(again(frame, link), fallback=fallback, when=when)
        made = execution_of(found)
        return found if made is None else made.placement

    return accelerate(planned, chosen, rescue=fallback == "spark", driver_only=little, renew=renew)


def check_options(fallback: str, when: str) -> None:
    """Raise ConfigError for a value of an option that is not allowed."""
    if fallback not in ("spark", "error"):
        raise ConfigError(f"fallback must be 'spark' or 'error', not {fallback!r}")
    if when not in ("auto", "always", "never"):
        raise ConfigError(f"when must be 'auto', 'always' or 'never', not {when!r}")


def _require_whole(planned: PlannedQuery) -> None:
    if planned.whole and not planned.reasons:
        return
    node, reason = (
        planned.reasons[0] if planned.reasons else ("Query", "A part of the query is left to Spark.")
    )
    raise Unsupported(f"{node}: {reason}")


def accelerate(
    planned: PlannedQuery,
    parts: Sequence[Part],
    rescue: bool = False,
    metrics: Metering | None = None,
    driver_only: bool = False,
    renew: Callable[[], Placement | DataFrame] | None = None,
) -> DataFrame:
    """The planned query with the given parts run by the engine and the rest by Spark.

    rescue: run an action that may run twice again on Spark when the engine fails. metrics: count what operators do.
    driver_only: for all but read-only actions the frame is Spark's. renew: plans the query again when its tables may have
    changed since.
    """
    if not parts:
        return planned.frame

    def placed(place: Callable[[], DataFrame], instead: str) -> DataFrame | None:
        try:
            return place()
        except Exception as error:
            if not rescue:
                raise
            warn_user(f"the engine could not place its stages, so {instead}: {type(error).__name__}: {error}")
            return None

    def build(shared_sort: bool) -> DataFrame:
        if planned.moment is not None and not shared_sort:
            return planned.frame  # tables may change before what Spark makes of it is run
        wanted = [p if shared_sort else p.unshared for p in parts]
        possible = {p.position: p for p in wanted if p is not None}
        if driver_only or len(possible) < len(wanted):
            return planned.frame
        made = placed(_Builder(planned, possible, metrics).whole, "Spark runs the query")
        return planned.frame if made is None else made

    driver, result = None, None
    if metrics is None and planned.whole:
        (part,), link, schema, config = parts, planned.bridge, planned.frame.schema, planned.config
        if fits_driver(planned, part):
            driver = DriverStage(link.spark, link.jvm, part.graph, schema, config, lambda: part.threaded)
        if has_columns(part) and not (driver_only and driver):
            ship = partial(shipped, link.spark, link.jvm, part.graph, config)
            result = ArrowResult(partial(placed, ship, "Spark brings the rows"), part.physical.schema, schema)
    return EngineFrame(Execution(Placement(planned, tuple(parts), build, driver, result), rescue, renew))


class _Builder:
    """Puts parts into Spark's plan, those below a hand-over into what Spark computes for it."""

    def __init__(
        self, planned: PlannedQuery, parts: Mapping[Position, Part], metrics: Metering | None
    ) -> None:
        self._planned = planned
        self._parts = parts
        self._metrics = metrics

    def whole(self) -> DataFrame:
        """The DataFrame of the query."""
        whole = self._parts.get(())
        if whole is not None:
            return self.part(whole, self._planned.frame)
        return self._planned.bridge.frame(self.subtree(self._planned.plan, ()))

    def part(self, part: Part, original: DataFrame) -> DataFrame:
        """The DataFrame of one part, with the columns of ``original``: names, types, nullability and expression ids."""
        planned = self._planned
        inputs = {}
        for handover in part.imported.inputs:
            at = position_below(part.node, part.position, handover.node)
            plan = self._jvm(handover.node)
            if at is not None:  # None: in a subquery's plan, which has no parts of its own
                plan = self.subtree(plan, at)
            inputs[handover.key] = planned.bridge.frame(planned.bridge.columns(plan, handover.positions))
        index = [p.position for p in planned.parts].index(part.position)
        meter = self._metrics.part(index) if self._metrics is not None else None
        link = planned.bridge
        output = original._jdf.queryExecution().analyzed().output()
        return to_dataframe(
            link.spark, link.jvm, part.graph, original.schema, planned.config, inputs, meter, output
        )

    def subtree(self, plan: Any, at: Position) -> Any:
        """Spark's plan at a position with the highest parts in it replaced."""
        below = [p for p in self._parts if p[: len(at)] == at]
        highest = [p for p in below if not any(q != p and p[: len(q)] == q for q in below)]
        if not highest:
            return plan
        frames = {}
        for position in highest:
            part = self._parts[position]
            original = self._planned.bridge.frame(self._jvm(part.node))
            frames[position[len(at) :]] = self.part(part, original)
        return self._planned.bridge.replaced(plan, frames)

    def _jvm(self, node: CatalystNode) -> Any:
        assert self._planned.facts is not None
        return self._planned.facts.jvm_object(node)
