"""``df.transform(kquery_plan)``: takes a Spark DataFrame and returns the same query, run by the engine."""

from __future__ import annotations

from time import perf_counter

from pyspark.sql import DataFrame

from kquery_spark.accelerate.execution.dataframe import execution_of
from kquery_spark.accelerate.execution.execution import PlacedQuery
from kquery_spark.accelerate.observers import Place, QueryEvent, is_observed, notify
from kquery_spark.accelerate.options import Fallback, When, check_options
from kquery_spark.accelerate.planning.garbage import collection_paused
from kquery_spark.accelerate.planning.pipeline import PlanningResult, plan_and_assemble
from kquery_spark.accelerate.planning.planned_query import PlannedQuery, coverage
from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.relations.catalog_snapshot import unplanned_copy
from kquery_spark.spark_bridge.session.bridge import check_frame, get_bridge
from kquery_spark.spark_bridge.session.failures import warn_user


def kquery_plan(frame: DataFrame, *, fallback: Fallback = "spark", when: When = "auto") -> DataFrame:
    """Run as much of a query as possible in the engine.

    frame: any batch DataFrame of a classic Spark session. Returns a lazy DataFrame with exactly its schema and rows.
    fallback: with "spark", Spark runs the parts that the engine declines. If the engine fails, Spark also runs a read-only
    action or a write to files, Delta, or Iceberg again, and a FallbackWarning says why. With "error", planning raises
    Unsupported with the first reason, and a failure of the engine raises the engine's error.
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

    def plan_again() -> PlacedQuery | DataFrame:
        copy = unplanned_copy(frame, get_bridge(frame.sparkSession))
        renewed = kquery_plan(copy, fallback=fallback, when=when)
        placed = execution_of(renewed)
        return renewed if placed is None else placed.placement

    start = perf_counter()
    try:
        with collection_paused():
            result = plan_and_assemble(frame, fallback, when, plan_again)
        _warn_of_workers(result.planned)
    except Exception as error:
        if fallback == "error":
            raise
        reason = error.reason if isinstance(error, Unsupported) else f"{type(error).__name__}: {error}"
        warn_user(f"the engine could not plan the query, so Spark runs it: {reason}")
        result = PlanningResult(frame, failure=reason)
    if is_observed(result.config):
        notify(_event(result, perf_counter() - start), result.config)
    return result.frame


def _event(result: PlanningResult, seconds: float) -> QueryEvent:
    """Return the event of planning that is passed to `on_query` callbacks."""
    place: Place = "spark"
    execution = execution_of(result.frame)
    if execution is not None:
        place = "tasks" if execution.placement.driver is None else "driver"
    share, sentences = 0.0, [decision.sentence for decision in result.decisions]
    if result.planned is not None:
        share = coverage(result.planned, result.chosen)
        sentences += [f"{node}: {reason}" for node, reason in result.planned.reasons]
    elif result.failure is None:
        sentences.append("Not accelerated: a scan and a filter only, so no gain is expected.")
    return QueryEvent("planned", "", place, share, tuple(sentences), seconds, result.failure)


def _warn_of_workers(planned: PlannedQuery | None) -> None:
    """Warn once per session that its Python workers cannot run the engine."""
    problem = None if planned is None else planned.worker_problem
    if planned is not None and problem is not None and planned.bridge.warns_first_time(problem):
        warn_user(f"Spark runs the queries of this session: {problem}")
