"""What may run twice: an action of the engine's that fails, once more on Spark alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from kquery_spark.spark_bridge.frames.arrow_collection import was_interrupted
from kquery_spark.spark_bridge.session.bypass import bypass
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS, engine_failure, query_error, warn_user

R = TypeVar("R")


def attempt(
    action: str,
    engine: Callable[[], R],
    spark: Callable[[], R] | None,
    on_failure: Callable[[str], None] = lambda failure: None,
) -> R:
    """What ``engine`` gives, or ``spark`` after a failure; an error that the query causes is raised as Spark's own.

    action: its name for the FallbackWarning. spark: None where nothing may run again. on_failure: called with what failed
    before Spark runs the query again.
    """
    try:
        with bypass():
            return engine()
    except (*SPARK_ERRORS, pa.ArrowException) as error:
        failure, mistake = engine_failure(error), query_error(error)
        if spark is None or (failure is None and mistake is None) or was_interrupted(error):
            raise
    on_failure(str(failure or mistake))
    if failure is not None:
        warn_user(f"the engine failed in {action}, so Spark runs the query again: {failure}")
    with bypass():
        result = spark()
    if mistake is not None:
        warn_user(f"the engine failed in {action} where Spark does not, whose answer this is: {mistake}")
    return result
