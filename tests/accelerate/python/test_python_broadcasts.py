"""Python functions that refer to broadcast variables, or are so large that PySpark broadcasts them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import FallbackWarning
from tests.accelerate.python.python_functions import arrow, arrow_udf, check, plain, shown
from tests.conftest import SPARK_VERSION

FACTORS = {0: 3, 1: 5, 2: 7}


def _single_rows(rows: DataFrame, factors: Any) -> Iterator[DataFrame]:
    """Functions of single rows, in a filter, over an exchange, next to and within others."""

    def times(x: int) -> int:
        return x * factors.value[x % 3]

    yield rows.select("id", plain(times, "bigint")("id").alias("v"))
    yield rows.where(arrow(times, "bigint")("id") > 100).groupBy("p").agg(F.sum("id"))
    sums = rows.groupBy("byte").agg(F.sum("id").alias("s"))
    yield sums.select(plain(times, "bigint")("s").alias("v")).groupBy("v").count()
    plus = plain(lambda x: x + 1, "bigint")
    yield rows.select(
        plus(plain(times, "bigint")(plus("id"))).alias("v"), arrow(times, "bigint")("id").alias("w")
    )

    @pandas_udf("bigint")
    def vectorized(x: pd.Series) -> pd.Series:
        return x * (x % 3).map(factors.value)

    @pandas_udf("bigint")
    def iterated(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        for x in batches:
            yield x * (x % 3).map(factors.value)

    yield rows.select(vectorized("id").alias("v"), iterated("id").alias("w")).groupBy("v").agg(F.sum("w"))
    if SPARK_VERSION >= (4, 1):
        yield rows.select(arrow_udf(lambda x: pc.multiply(x, factors.value[1]), "bigint")("id").alias("v"))


def _groups(rows: DataFrame, factors: Any) -> Iterator[DataFrame]:
    """Functions of groups, windows, pairs of groups and batches."""

    @pandas_udf("double")
    def mean(x: pd.Series) -> float:
        return float(x.mean() * factors.value[2])

    def grouped(group: pd.DataFrame) -> pd.DataFrame:
        return group.assign(id=group["id"] * factors.value[1])

    def batches(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        return map(grouped, frames)

    def arrow_batches(tables: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tables:
            yield pa.RecordBatch.from_arrays([pc.multiply(batch.column(0), factors.value[2])], ["id"])

    def pairs(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"n": [len(left) * factors.value[0] + len(right)]})

    narrow, schema = rows.select("p", "id"), "p string, id long"
    yield rows.groupBy("p").agg(mean("id").alias("m"))
    yield rows.select("id", mean("id").over(Window.partitionBy("p")).alias("m"))
    yield narrow.groupBy("p").applyInPandas(grouped, schema)
    yield narrow.groupBy("p").cogroup(narrow.where("id < 20").groupBy("p")).applyInPandas(pairs, "n long")
    yield narrow.mapInPandas(batches, schema).groupBy("p").agg(F.sum("id"))
    yield narrow.select("id").mapInArrow(arrow_batches, "id long").groupBy("id").count()
    if SPARK_VERSION >= (4, 0):

        def table(rows: pa.Table) -> pa.Table:
            return rows.set_column(1, "id", pc.multiply(rows.column("id"), factors.value[0]))

        yield narrow.groupBy("p").applyInArrow(table, schema)


@pytest.mark.parametrize("queries", [_single_rows, _groups])
def test_broadcast_variables(
    rows: DataFrame, spark: SparkSession, queries: Callable[[DataFrame, Any], Iterator[DataFrame]]
) -> None:
    factors = spark.sparkContext.broadcast(FACTORS)
    for query in queries(rows, factors):
        check(query)


def test_variables_of_several_stages_and_queries(rows: DataFrame, spark: SparkSession) -> None:
    """Each task gets those of its own functions, in workers that have run others, and those of values that are gone."""
    first, second = (spark.sparkContext.broadcast(value) for value in ({"a": 2}, [11, 13]))
    below = plain(lambda x: x * first.value["a"], "bigint")
    above = plain(lambda x: x * second.value[1], "bigint")
    query = rows.select("p", below("id").alias("v")).groupBy("p").agg(F.sum("v").alias("s"))
    check(query.select("p", above("s").alias("w")))
    check(rows.select(above("id").alias("v"), arrow(lambda x: x + len(second.value), "bigint")("id")))
    fast = query.transform(kquery_plan, when="always")
    expected = shown(query.collect())
    first.unpersist(blocking=True)
    assert shown(fast.collect()) == shown(fast.collect()) == expected
    for value in range(3):
        third = spark.sparkContext.broadcast(value)
        check(rows.select(plain(lambda x, held=third: x + held.value, "bigint")("id").alias("v")))


class Marked:
    """A value that leaves a mark in a file each time that it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (f"[19, open({self._path!r}, 'a').write('x')]",)


def test_a_worker_reads_a_value_once(rows: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    held = spark.sparkContext.broadcast(Marked(tmp_path / "marks"))
    query = rows.select(plain(lambda x: x + held.value[0], "bigint")("id").alias("v"))
    fast = query.transform(kquery_plan, when="always", fallback="error")
    answers = [shown(fast.collect()) for _ in range(6)]
    marks = (tmp_path / "marks").read_text()
    assert answers == [shown(query.collect())] * 6
    assert 1 <= len(marks) <= 4, "tasks of the same workers read the value again"


def test_large_functions(rows: DataFrame, spark: SparkSession) -> None:
    weights = os.urandom(1 << 21)
    held = spark.sparkContext.broadcast([17])
    large = plain(lambda x: weights[x] + len(weights), "bigint")
    both = arrow(lambda x: weights[x % 100] + held.value[0], "bigint")

    @pandas_udf("double")
    def mean(x: pd.Series) -> float:
        return float(x.mean()) + weights[0]

    query = rows.select("p", large("id").alias("v"), both(large("id")).alias("w"))
    check(query)
    check(query.groupBy("p").agg(mean("v").alias("m")))
    text = str(kq.explain(query))
    assert len(text) < 10_000, "the function's code is in the explanation"


def _error(frame: DataFrame) -> tuple[type[BaseException], str]:
    with warnings.catch_warnings(), pytest.raises(Exception, match=r".") as raised:
        warnings.simplefilter("error", FallbackWarning)
        frame.collect()
    return raised.type, str(raised.value)


@pytest.mark.parametrize("when", ["before the plan", "before the action"])
def test_destroyed_variables_are_spark_s_error(rows: DataFrame, spark: SparkSession, when: str) -> None:
    held = spark.sparkContext.broadcast(5)
    query = rows.select(plain(lambda x: x + held.value, "bigint")("id").alias("v")).groupBy("v").count()
    fast = query.transform(kquery_plan, when="always") if when == "before the action" else None
    held.destroy(blocking=True)
    fast = fast or query.transform(kquery_plan, when="always")
    ours, theirs = _error(fast), _error(query)
    assert ours[0] is theirs[0]
    for _, message in (ours, theirs):
        assert "after it was destroyed" in message


class Unreadable:
    """A value that no worker can unpickle."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("not a number",)


def test_a_value_that_workers_cannot_read_is_spark_s_error(rows: DataFrame, spark: SparkSession) -> None:
    held = spark.sparkContext.broadcast(Unreadable())
    query = rows.select(plain(lambda x: held.value, "bigint")("id").alias("v")).groupBy("v").count()
    ours, theirs = (_error(frame) for frame in (query.transform(kquery_plan, when="always"), query))
    assert ours[0] is theirs[0]
    assert "ValueError: invalid literal" in ours[1]


def test_files_and_accumulators_beside_a_variable(
    rows: DataFrame, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "offset.txt").write_text("1000")
    spark.sparkContext.addFile(str(tmp_path / "offset.txt"))
    held, counted = spark.sparkContext.broadcast(3), spark.sparkContext.accumulator(0)

    def call(x: int) -> int:
        counted.add(held.value)
        with open(SparkFiles.get("offset.txt")) as file:
            return x * held.value + int(file.read())

    query = rows.select(plain(call, "bigint")("id").alias("v"), "p").groupBy("p").agg(F.sum("v"))
    check(query)
    assert counted.value == 2 * 3 * 1200  # of the engine's run and of Spark's
