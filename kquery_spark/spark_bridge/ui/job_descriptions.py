"""Controls how Spark shows jobs: their descriptions in its UI and event log, and progress bars on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

from kquery_spark.spark_bridge.session.setting_values import is_true

_PROPERTY = "spark.job.description"


def draws_progress(context: SparkContext) -> bool:
    """Return whether Spark draws bars of its stages on the terminal."""
    return is_true(context.getConf().get("spark.ui.showConsoleProgress", "false"))


@contextmanager
def job_description(context: SparkContext, description: str) -> Iterator[None]:
    """Give the jobs that this thread starts in this block a description, unless the user has set one."""
    if context.getLocalProperty(_PROPERTY) is not None:
        yield
        return
    context.setLocalProperty(_PROPERTY, description)
    try:
        yield
    finally:
        context.setLocalProperty(_PROPERTY, None)  # type: ignore[arg-type]
