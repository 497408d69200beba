"""Collects the rows of a DataFrame in the driver, as the Arrow batches that Spark sends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from kquery_spark.spark_bridge.session.bridge import get_bridge
from kquery_spark.spark_bridge.session.setting_values import parse_bytes


def collect_batches(frame: Any) -> list[pa.RecordBatch]:
    """Collect all rows of a DataFrame. After Ctrl-C it raises KeyboardInterrupt, like ``collect``.

    PySpark's own method would raise the error of the cancelled job instead.
    """
    try:
        batches: list[pa.RecordBatch] = frame._collect_as_arrow()
    except Exception as error:
        if was_interrupted(error):
            raise KeyboardInterrupt from None
        raise
    return batches


def was_interrupted(error: BaseException | None) -> bool:
    """Return whether an error was raised while Ctrl-C was handled."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


def max_result_bytes(spark: SparkSession) -> int | None:
    """Return Spark's limit in bytes for results in the driver; None without a limit."""
    return parse_bytes(str(spark.conf.get("spark.driver.maxResultSize", "1g"))) or None


@contextmanager
def with_session_tags(spark: SparkSession) -> Iterator[None]:
    """A block in which jobs of a copy of the session also have the session's tags, so that ``interruptAll`` finds them."""
    if not get_bridge(spark).api.session_tags:
        yield
        return
    session: Any = spark._jsparkSession
    context: Any = spark.sparkContext._jsc.sc()
    users = str(session.managedJobTags().get().values().mkString(","))
    tags = [str(session.sessionJobTag()), *filter(None, users.split(","))]
    before = context.getJobTags()
    added = [tag for tag in tags if not before.contains(tag)]
    for tag in added:
        context.addJobTag(tag)
    try:
        yield
    finally:
        for tag in added:
            context.removeJobTag(tag)
