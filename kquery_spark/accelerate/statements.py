"""Runs SQL statements that write: the engine computes the rows of the statement's query, and Spark writes them.

Spark still parses the statement, checks and casts its columns, partitions the rows, and commits them. If the engine fails,
Spark runs the original SQL, so statements whose failure may leave files behind fall back to Spark from the start.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from kquery_spark.accelerate.api import kquery_plan
from kquery_spark.accelerate.execution.dataframe import execution_of
from kquery_spark.accelerate.execution.execution import Execution
from kquery_spark.accelerate.execution.writer import contains_any
from kquery_spark.accelerate.options import Fallback, When
from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.plan.write_statements import WriteStatement, parse_write
from kquery_spark.spark_bridge.session.bridge import Bridge, get_bridge, same_plan
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS, warn_user


@dataclass(frozen=True)
class _PlannedWrite:
    """A statement, and the engine's DataFrame for its query."""

    statement: WriteStatement
    execution: Execution
    frame: DataFrame


def run_write(spark: SparkSession, text: str, fallback: Fallback, when: When) -> DataFrame | None:
    """Run ``spark.sql(text)`` with the engine's rows and return its DataFrame; None if Spark should run the statement.

    text: a statement for which ``may_write`` is true.
    """
    try:
        bridge = get_bridge(spark)
        planned = _plan_write(bridge, text, fallback, when)
    except Exception as error:
        if fallback == "error":
            raise
        reason = error.reason if isinstance(error, Unsupported) else f"{type(error).__name__}: {error}"
        warn_user(f"the engine could not plan the statement, so Spark runs it: {reason}")
        return None
    if planned is None:
        return None
    statement, frame, execution = planned.statement, planned.frame, planned.execution
    run_on_spark = (lambda: spark.sql(text)) if execution.rescue else None
    return execution.write(lambda: statement.run_for(frame, bridge), run_on_spark)


def _plan_write(bridge: Bridge, text: str, fallback: Fallback, when: When) -> _PlannedWrite | None:
    """Plan the query of a statement; None if Spark should run the statement."""
    statement = parse_write(text, bridge)
    if statement is None or (
        fallback == "spark" and not statement.target.cleans_up_after_failure(bridge.spark)
    ):
        return None
    query = _query(statement, bridge)
    if query is None:
        return None
    execution = execution_of(kquery_plan(query, fallback=fallback, when=when))
    if execution is None:
        return None
    frame = execution.frame_to_write()
    if same_plan(frame, execution.original):
        return None  # the engine wins only if the driver collects the rows, so Spark runs the write
    location = statement.target.location
    if location is not None and contains_any(location, execution.files()):
        return None  # Spark deletes the directory's files before the engine's tasks read them
    return _PlannedWrite(statement, execution, frame) if execution.placement.parts else None


def _query(statement: WriteStatement, bridge: Bridge) -> DataFrame | None:
    """Return the query of a statement; None if Spark cannot analyze it, so that Spark raises the statement's error."""
    try:
        query = statement.query_frame(bridge)
    except SPARK_ERRORS:
        return None
    return None if query.isStreaming else query
