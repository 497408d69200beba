"""SQL statements that write, with the rows of their query from the engine.

The statement stays Spark's: its parser, its rules for columns, casts and partitions, its commit. Where the engine fails,
Spark runs the text as it is, so statements that may leave something behind when they fail are not for the engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from kquery_spark.accelerate.api import Fallback, When, kquery_plan
from kquery_spark.accelerate.execution.dataframe import execution_of
from kquery_spark.accelerate.execution.execution import Execution
from kquery_spark.accelerate.execution.writer import is_or_holds
from kquery_spark.spark_bridge.failures import SPARK_ERRORS, warn_user
from kquery_spark.spark_bridge.session import Bridge, bridge, same_plan
from kquery_spark.spark_bridge.write_statements import WriteStatement, parse_write


@dataclass(frozen=True)
class _PlannedWrite:
    """A statement and the DataFrame that it is to write, of the engine."""

    statement: WriteStatement
    execution: Execution
    frame: DataFrame


def run_write(spark: SparkSession, text: str, fallback: Fallback, when: When) -> DataFrame | None:
    """What ``spark.sql(text)`` gives, of a statement that writes what the engine computes; None where Spark is to run it."""
    link = bridge(spark)
    try:
        planned = _planned(link, text, fallback, when)
    except Exception as error:
        if fallback == "error":
            raise
        warn_user(
            f"the engine could not plan the statement, so Spark runs it: {type(error).__name__}: {error}"
        )
        return None
    if planned is None:
        return None
    statement, frame, execution = planned.statement, planned.frame, planned.execution
    again = (lambda: spark.sql(text)) if execution.rescue else None
    return execution.write(lambda: statement.run_for(frame, link), again)


def _planned(link: Bridge, text: str, fallback: Fallback, when: When) -> _PlannedWrite | None:
    statement = parse_write(text, link)
    if statement is None or (fallback == "spark" and not statement.target.leaves_nothing(link.spark)):
        return None
    query = _query(statement, link)
    if query is None:
        return None
    execution = execution_of(kquery_plan(query, fallback=fallback, when=when))
    if execution is None:
        return None
    frame = execution.frame_to_write()
    if same_plan(frame, execution.original):
        return None  # little work, which is the engine's only where the rows come to the driver
    location = statement.target.location
    if location is not None and is_or_holds(location, execution.files()):
        return None  # Spark empties the folder first, and its own shuffles may have read it by then
    return _PlannedWrite(statement, execution, frame) if execution.placement.parts else None


def _query(statement: WriteStatement, link: Bridge) -> DataFrame | None:
    """The query of a statement; None where Spark cannot analyze it alone, and so says what is wrong with the whole."""
    try:
        query = statement.query_frame(link)
    except SPARK_ERRORS:
        return None
    return None if query.isStreaming else query
