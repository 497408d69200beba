"""``df.transform(kquery_plan)``: takes a Spark DataFrame and returns the same query, run by the engine."""

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
    """Run as much of a query as possible in the engine.

    frame: any batch DataFrame of a classic Spark session. Returns a lazy DataFrame with exactly its schema and rows.
    fallback: with "spark", Spark runs what the engine declines. If the engine fails, Spark also runs a read-only action or a
    write to files again, and a FallbackWarning says why. With "error", the first reason is raised as Unsupported, and the
    engine's errors are raised.
    when: "auto" uses the engine where it should win, "always" wherever it can, and "never" returns ``frame``.

    Planning runs no job of the query, but it reads file footers. On a cluster, the first call runs one small job that asks
    Spark's Python workers for their versions.
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
    """The result of planning: the DataFrame to return, and what the query event reports.

    config: the settings, or None if planning failed before it read them. chosen: the parts that the engine runs, a subset of
    the parts with a decision. failure: why the engine could not plan the query, or None.
    """

    frame: DataFrame
    config: EngineConfig | None = None
    planned: PlannedQuery | None = None
    decisions: tuple[Decision, ...] = ()
    chosen: tuple[Part, ...] = ()
    failure: str | None = None

    def event(self, seconds: float) -> QueryEvent:
        """Return the event that is passed to `on_query` callbacks."""
        place: Place = "spark"
        execution = execution_of(self.frame)
        if execution is not None:
            place = "tasks" if execution.placement.driver is None else "driver"
        share, sentences = 0.0, [decision.sentence for decision in self.decisions]
        if self.planned is not None:
            share = coverage(self.planned, self.chosen)
            sentences += [f"{node}: {reason}" for node, reason in self.planned.reasons]
        elif self.failure is None:
            sentences.append("Not accelerated: a scan and a filter only, so no gain is expected.")
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
    with contextlib.suppress(*SPARK_ERRORS):  # planning raises the error again and reports it
        return spark_plan(frame, link)
    return None


def _warn_first_time(planned: PlannedQuery) -> None:
    """Warn once per session that its Python workers cannot run the engine."""
    link, problem = planned.bridge, planned.worker_problem
    if problem is not None and link.warns_first_time(problem):
        warn_user(f"Spark runs the queries of this session: {problem}")


def _chosen(planned: PlannedQuery, decisions: Sequence[Decision], when: When) -> tuple[list[Part], bool]:
    """Return the parts to run in the engine, and whether only actions that collect rows in the driver gain from them."""
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
        planned.reasons[0] if planned.reasons else ("Query", "a part of the query falls back to Spark")
    )
    raise Unsupported(f"{node}: {reason}")
