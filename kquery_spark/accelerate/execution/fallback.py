"""Runs an action in the engine and, if that fails and the action may run twice, on Spark alone."""

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
    """Return the result of ``engine`` or, after a failure, of ``spark``.

    There are two kinds of failure. If the engine failed, a FallbackWarning says so before Spark runs the query again. If the
    query failed on its data, Spark runs it again to raise its own error; if Spark succeeds instead, a warning says so.

    action: the name of the action for the warning. spark: None if the action must not run twice. on_failure: called with a
    description of the failure before Spark runs the query again.
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
        warn_user(
            f"the engine failed in {action}, but Spark did not, so the result comes from Spark: {mistake}"
        )
    return result
