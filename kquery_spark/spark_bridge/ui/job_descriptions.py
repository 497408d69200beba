"""What Spark shows of jobs: their descriptions in its UI and event log, and bars on the terminal."""

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
def described_jobs(context: SparkContext, description: str) -> Iterator[None]:
    """Jobs that this thread starts meanwhile have the description, unless the user gave them one."""
    if context.getLocalProperty(_PROPERTY) is not None:
        yield
        return
    context.setLocalProperty(_PROPERTY, description)
    try:
        yield
    finally:
        context.setLocalProperty(_PROPERTY, None)  # type: ignore[arg-type]
