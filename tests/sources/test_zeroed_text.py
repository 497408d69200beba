"""CSV and JSON files in which ranges of bytes are zero, as lost blocks of a disk are: Spark's rows, or an error in both."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan

ROWS = 300
SCHEMA = "id bigint, s string, d double"
LINES = {
    "csv": lambda i: f'{i},"s, {i}",{i * 1.5}',
    "json": lambda i: f'{{"id": {i}, "s": "s, {i}", "d": {i * 1.5}}}',
}
RANGES = {
    "start of the file": (0, 3),
    "one byte of a number": (1030, 1),
    "within a line": (1035, 4),
    "several lines": (1000, 700),
    "a block": (512, 4096),
    "end of the file": (-40, 40),
}


def answer(run: Callable[[], Any]) -> Any:
    """The rows in order; True for an error."""
    try:
        return sorted(map(repr, run()))
    except Exception:
        return True


def collect_planned(frame: DataFrame) -> list[Any]:
    """Collect with an explicit plan of the engine."""
    return frame.transform(kquery_plan, when="always").collect()


def collect_enabled(frame: DataFrame) -> list[Any]:
    """Collect in an enabled session, which runs also small queries in the engine."""
    spark = frame.sparkSession
    kq.enable(spark, when="always")
    try:
        return frame.collect()
    finally:
        kq.disable(spark)


@pytest.mark.parametrize("collect", [collect_planned, collect_enabled])
@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"])
@pytest.mark.parametrize("format_name", LINES)
def test_the_engine_answers_as_spark_does(
    spark: SparkSession,
    tmp_path: Path,
    format_name: str,
    mode: str,
    collect: Callable[[DataFrame], list[Any]],
) -> None:
    data = "".join(f"{LINES[format_name](i)}\n" for i in range(ROWS)).encode()
    differing = {}
    for name, (start, size) in RANGES.items():
        start %= len(data)
        path = tmp_path / f"{name}.{format_name}"
        path.write_bytes(data[:start] + bytes(size) + data[start + size :])
        frame = spark.read.schema(SCHEMA).option("mode", mode).format(format_name).load(str(path))
        expected = answer(frame.collect)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            actual = answer(lambda frame=frame: collect(frame))
        if actual != expected:
            differing[name] = (actual, expected)
    assert not differing
