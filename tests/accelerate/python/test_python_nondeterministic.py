"""Nondeterministic Python functions: called once for each row, and what reads their values agrees."""

from __future__ import annotations

import random

import pandas as pd
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.accelerate.python.python_functions import arrow, plain, shown


def test_every_row_is_called_once(rows: DataFrame, spark: SparkSession) -> None:
    """A function that gives the same value each time, so that the answers can be compared, and counts its calls."""
    calls = spark.sparkContext.accumulator(0)

    def counted(x: int) -> int:
        calls.add(1)
        return x * 7 % 31

    other = rows.where("id < 100").select(F.col("id").alias("other"), F.col("p").alias("q"))
    few = rows.where("id IN (3, 5, 8)").groupBy("id").count()
    drawn = rows.select("id", "p", plain(counted, "bigint").asNondeterministic()("id").alias("v"))
    by_arrow = rows.select("p", arrow(counted, "bigint").asNondeterministic()("id").alias("v"))
    queries = [
        drawn.where("v < 9 AND id < 700"),
        by_arrow.groupBy("p").agg(F.sum("v"), F.max("v")),
        drawn.groupBy("v").count().where("v > 3"),
        drawn.join(other, drawn.id == other.other).groupBy("q").agg(F.sum("v")),
        drawn.join(few, "id").select("id", "v"),
        drawn.join(few, "id", "left_semi"),
        drawn.orderBy("id").limit(5),
        drawn.select("id", "v", F.row_number().over(Window.partitionBy("p").orderBy("v", "id")).alias("n")).where("n < 4"),
        by_arrow.distinct(),
    ]  # fmt: skip
    for query in queries:
        fast, before = query.transform(kquery_plan, when="always", fallback="error"), calls.value
        ours = fast.collect()
        assert calls.value - before == 1200, str(kq.explain(query))
        assert shown(ours) == shown(query.collect())


def test_every_group_is_called_once(rows: DataFrame, spark: SparkSession) -> None:
    calls = spark.sparkContext.accumulator(0)

    @pandas_udf("double")
    def counted(x: pd.Series) -> float:
        calls.add(1)
        return float(x.sum())

    total = counted.asNondeterministic()
    few = rows.where("id < 90").select("id", "p")
    whole = Window.partitionBy("p")
    for query, count in (
        (few.groupBy("p").agg(total("id").alias("v")).where("v > 5").orderBy("v"), 3),
        (few.groupBy("id").agg((total("id") + 1).alias("v")).groupBy("v").count(), 90),
        (few.select("id", total("id").over(whole).alias("v")).where("v > 5").groupBy("v").count(), 3),
        (few.select("id", total("id").over(whole.orderBy("id").rowsBetween(-1, 0)).alias("v")), 90),
    ):
        fast, before = query.transform(kquery_plan, when="always", fallback="error"), calls.value
        assert kq.explain(query).coverage == 1.0, str(kq.explain(query))
        ours = fast.collect()
        assert calls.value - before == count
        assert shown(ours) == shown(query.collect())


def test_what_reads_the_values_agrees(rows: DataFrame) -> None:
    draw = plain(lambda x: random.random(), "double").asNondeterministic()

    @pandas_udf("double")
    def draws(x: pd.Series) -> pd.Series:
        return pd.Series([random.random() for _ in x])

    for drawn in (
        rows.select("id", draw("id").alias("v")),
        rows.select("id", draws.asNondeterministic()("id").alias("v")),
        rows.groupBy("id").count().select("id", draw("id").alias("v")),
    ):
        query = drawn.where("v < 0.5").select("id", "v", F.col("v").alias("w"), (F.col("v") * 2).alias("u"))
        kq.assert_accelerated(query)
        found = query.transform(kquery_plan, when="always").collect()
        assert 400 < len(found) < 800
        assert all(row["v"] < 0.5 and row["v"] == row["w"] == row["u"] / 2 for row in found)
        assert len({row["v"] for row in found}) == len(found)
    twice = rows.select(draw("id").alias("v"), draw("id").alias("w"))
    kq.assert_accelerated(twice)
    assert all(row["v"] != row["w"] for row in twice.transform(kquery_plan, when="always").collect())


def test_verify_says_that_two_runs_may_differ(rows: DataFrame) -> None:
    draw = plain(lambda x: random.random(), "double").asNondeterministic()
    report = kq.verify(rows.where("id < 9").select(draw("id").alias("v")))
    assert "nondeterministic function, so two runs may differ" in str(report)
