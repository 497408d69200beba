"""The first step of planning: reads Spark's optimized plan of a DataFrame."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from kquery_spark.spark_bridge.relations.catalog_snapshot import SparkPlan, spark_plan
from kquery_spark.spark_bridge.session.bridge import Bridge, check_frame, get_bridge
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS


@dataclass(frozen=True)
class OptimizedFrame:
    """A DataFrame and Spark's optimized plan of its query.

    plan: None if the query cannot be planned. problem: why not, else None.
    """

    frame: DataFrame
    bridge: Bridge
    plan: SparkPlan | None
    problem: str | None = None


def read_plan(frame: DataFrame, *, delta_prepares: bool = False) -> OptimizedFrame:
    """Read Spark's plan of a DataFrame.

    If Spark cannot plan the query, ``problem`` says why; Spark itself raises the error when an action runs.

    delta_prepares: let Delta's own rule list the files of its tables, instead of using the engine's cached snapshots.
    """
    check_frame(frame, "kquery_spark")
    bridge = get_bridge(frame.sparkSession)
    if frame.isStreaming:
        return OptimizedFrame(frame, bridge, None, "streaming queries are not supported")
    try:
        return OptimizedFrame(frame, bridge, spark_plan(frame, bridge, delta_prepares=delta_prepares))
    except SPARK_ERRORS as error:
        first_line = str(error).strip().partition("\n")[0]
        return OptimizedFrame(frame, bridge, None, f"Spark cannot plan this query itself: {first_line}")
