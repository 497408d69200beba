"""The comparison with Spark that tests of single queries end with, and tables for them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kquery_spark as kq
from kquery_spark import kquery_plan

#: Settings by which a few small files are work for several tasks, with shuffles between them.
MANY_TASKS = {
    "spark.kquery.smallBytes": "0",
    "spark.kquery.splitBytes": "1",
    "spark.kquery.broadcastBytes": "0",
    "spark.kquery.shufflePartitions": "3",
}


def check(frame: Any, coverage: float = 0.0) -> kq.Report:
    """The engine plans the query without a warning, keeps its schema, and gives Spark's rows; gives the report."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", kq.FallbackWarning)
        fast = frame.transform(kquery_plan, when="always")
    assert fast.schema == frame.schema
    report = kq.verify(frame)
    assert report.ok, str(report)
    assert report.coverage >= coverage, f"coverage is {report.coverage}"
    return report


@contextmanager
def view_of_files(spark: Any, name: str, query: str, directory: Path) -> Iterator[None]:
    """The rows of a query as a view of three Parquet files."""
    path = str(directory / name)
    spark.sql(query).repartition(3).write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView(name)
    try:
        yield
    finally:
        spark.catalog.dropTempView(name)
