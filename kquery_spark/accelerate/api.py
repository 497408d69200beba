"""``df.transform(kquery_plan)``: a Spark DataFrame in, the same DataFrame run by the engine out."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

from pyspark.sql import DataFrame

from kquery_spark.accelerate.execution.assemble import accelerate
from kquery_spark.accelerate.execution.dataframe import execution_of
from kquery_spark.accelerate.execution.execution import PlacedQuery
from kquery_spark.accelerate.observers import Place, QueryEvent, is_observed, notify
from kquery_spark.accelerate.planning.decision import Decision, decide
from kquery_spark.accelerate.planning.fast_reject import nothing_to_win
from kquery_spark.accelerate.planning.garbage import collection_paused
from kquery_spark.accelerate.planning.part import Part
from kquery_spark.accelerate.planning.plan_query import PlannedQuery, coverage, plan_frame
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import ConfigError, Unsupported
from kquery_spark.spark_bridge.relations.catalog_snapshot import SparkPlan, spark_plan, unplanned_copy
from kquery_spark.spark_bridge.session.bridge import Bridge, bridge, check_frame
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS, warn_user

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
    execution = execution_of(frame)
    if execution is not None:
        frame = execution.original
    start = perf_counter()
    try:
        with collection_paused():
            result = _planned(frame, fallback, when)
    except ConfigError:
        raise
    except Exception as error:
        if fallback == "error":
            raise
        reason = error.reason if isinstance(error, Unsupported) else f"{type(error).__name__}: {error}"
        warn_user(f"the engine could not plan the query, so Spark runs it: {reason}")
        result = _Result(frame, failure=reason)
    if is_observed(result.config):
        notify(result.event(perf_counter() - start), result.config)
    return result.frame


@dataclass(frozen=True)
class _Result:
    """The DataFrame to use. config: as far as it was read. chosen: the parts that the engine runs, of those decided on.

    failure: why the engine could not plan the query.
    """

    frame: DataFrame
    config: EngineConfig | None = None
    planned: PlannedQuery | None = None
    decisions: tuple[Decision, ...] = ()
    chosen: tuple[Part, ...] = ()
    failure: str | None = None

    def event(self, seconds: float) -> QueryEvent:
        """What those who watch queries are told."""
        place: Place = "spark"
        execution = execution_of(self.frame)
        if execution is not None:
            place = "tasks" if execution.placement.driver is None else "driver"
        share, sentences = 0.0, [decision.sentence for decision in self.decisions]
        if self.planned is not None:
            share = coverage(self.planned, self.chosen)
            sentences += [f"{node}: {reason}" for node, reason in self.planned.reasons]
        elif self.failure is None:
            sentences.append("Rows are only passed on, which Spark does itself as fast.")
        return QueryEvent("planned", "", place, share, tuple(sentences), seconds, self.failure)


def _planned(frame: DataFrame, fallback: Fallback, when: When) -> _Result:
    link = bridge(frame.sparkSession)
    query = None
    if when == "auto" and fallback == "spark" and not frame.isStreaming:
        query = _spark_plan_or_none(frame, link)
        if query is not None and nothing_to_win(link, query.optimized):
            return _Result(frame, link.last_config)
    planned = plan_frame(frame, query)
    if not planned.config.enabled:
        return _Result(frame, planned.config, planned)
    if fallback == "error":
        _require_whole(planned)
    _warn_first_time(planned)
    decisions = tuple(decide(planned, part) for part in planned.parts)
    chosen, little = _chosen(planned, decisions, when)

    def renew() -> PlacedQuery | DataFrame:
        renewed = kquery_plan(unplanned_copy(frame, link), fallback=fallback, when=when)
        execution = execution_of(renewed)
        return renewed if execution is None else execution.placement

    fast = accelerate(planned, chosen, rescue=fallback == "spark", driver_only=little, renew=renew)
    return _Result(fast, planned.config, planned, decisions, tuple(chosen))


def _spark_plan_or_none(frame: DataFrame, link: Bridge) -> SparkPlan | None:
    with contextlib.suppress(*SPARK_ERRORS):  # planning meets it, too, and says so
        return spark_plan(frame, link)
    return None


def _warn_first_time(planned: PlannedQuery) -> None:
    """Say once a session that its Python workers cannot run the engine."""
    link, problem = planned.bridge, planned.worker_problem
    if problem is not None and link.warns_first_time(problem):
        warn_user(f"Spark runs the queries of this session: {problem}")


def _chosen(planned: PlannedQuery, decisions: Sequence[Decision], when: When) -> tuple[list[Part], bool]:
    """The parts to run in the engine, and whether only actions that bring their rows to the driver win by it."""
    if when == "always":
        return list(planned.parts), False
    chosen = [part for part, decision in zip(planned.parts, decisions, strict=True) if decision.accelerate]
    return chosen, when == "auto" and any(decision.driver_only for decision in decisions)


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
        planned.reasons[0] if planned.reasons else ("Query", "A part of the query falls back to Spark.")
    )
    raise Unsupported(f"{node}: {reason}")
