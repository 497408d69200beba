"""An expression that falls back to Spark keeps no other with it: nodes are split, and the engine runs what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.ml.functions import array_to_vector, vector_to_array
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark.spark_bridge.plan.plan_builder import PlanBuilder
from tests.accelerate.checks import check, view_of_files
from tests.conftest import settings


def scala(value: Any) -> Column:
    """A number, or -1 for NULL, by way of two Scala UDFs, which take no NULL on Spark 3.5."""
    column = F.col(value) if isinstance(value, str) else value
    return vector_to_array(array_to_vector(F.array(F.coalesce(column.cast("double"), F.lit(-1.0)))))[0]


@pytest.fixture(scope="module")
def facts(spark: SparkSession, tmp_path_factory: Any) -> Iterator[DataFrame]:
    query = (
        "SELECT id AS n, nullif(id % 7, 3) AS k, CAST(id % 50 AS DOUBLE) AS x, CAST(id % 11 AS INT) AS y,"
        " concat('s', id % 5) AS s FROM range(3000)"
    )
    with view_of_files(spark, "split_facts", query, tmp_path_factory.mktemp("splits")):
        yield spark.table("split_facts")


@pytest.fixture(scope="module")
def names(spark: SparkSession, tmp_path_factory: Any) -> Iterator[DataFrame]:
    query = "SELECT id AS k, concat('name ', id) AS name, id % 3 AS z FROM range(6)"
    with view_of_files(spark, "split_names", query, tmp_path_factory.mktemp("splits")):
        yield spark.table("split_names")


Query = Callable[[DataFrame, DataFrame], DataFrame]


def pairs(facts: DataFrame, names: DataFrame, *terms: Column) -> DataFrame:
    return facts.join(names, [facts.k == names.k, *terms]).select(facts.k, "n", "x", "y", "name", "z")


QUERIES: dict[str, tuple[Query, str]] = {
    "a filter of pairs": (
        lambda f, n: pairs(f, n).filter((scala(F.col("x") + F.col("z")) > 5) & (F.col("y") > F.col("z"))),
        "Project(Filter(*Join",
    ),
    "a join": (
        lambda f, n: pairs(f, n, scala(f.x + n.z) > 5, f.y + n.z > 3),
        "Project(Filter(*Join",
    ),
    "a join below an aggregate": (
        lambda f, n: pairs(f, n, scala(f.x + n.z) > 5).groupBy("name").agg(F.sum("y"), F.count("x")),
        "*Aggregate(>Project(Filter(*Join",
    ),
    "columns of pairs": (
        lambda f, n: pairs(f, n).select(
            scala(F.col("x") + F.col("z")).alias("u"),
            (F.col("x") * F.col("y")).alias("p"),
            F.upper("name").alias("p2"),
            "k",
        ),
        "Project(*Project(Join",
    ),
    "results of groups": (
        lambda f, n: f.groupBy("k").agg(
            scala(F.sum("x") + F.max("y")).alias("u"), F.count("*").alias("c"), scala("k").alias("w")
        ),
        "Project(*Aggregate",
    ),
    "results of groups without their keys": (
        lambda f, n: f.groupBy("k", "s").agg(scala(F.sum("x") + F.col("k")).alias("u")),
        "Project(*Aggregate",
    ),
    "results of all rows": (
        lambda f, n: f.filter("y > 100").agg(scala(F.count("x")).alias("u"), F.max("s").alias("m")),
        "Project(*Aggregate",
    ),
    "results that are filtered": (
        lambda f, n: (
            f.groupBy("k").agg(scala(F.sum("x")).alias("u"), F.count("*").alias("c")).filter("c > 428")
        ),
        "Filter(Project(*Aggregate",
    ),
    "arguments of aggregates": (
        lambda f, n: f.groupBy("k").agg(F.stddev(scala("x")).alias("u"), F.count("*").alias("c")),
        "*Aggregate(>Project",
    ),
    "arguments by group": (
        lambda f, n: f.groupBy("k").agg(
            F.max(scala("y").cast("int")).alias("u"), F.sum("x").alias("x"), F.count("k").alias("c")
        ),
        "*Aggregate(>Project",
    ),
    "keys": (
        lambda f, n: f.groupBy(scala(F.col("y") + 1).alias("u"), "k").agg(
            F.min("s").alias("m"), F.count("*").alias("c"), (F.sum("x") + F.max("y")).alias("q")
        ),
        "*Aggregate(>Project",
    ),
    "a filter of groups": (
        lambda f, n: f.filter(scala("y") > 4).filter("x > 7").groupBy("k").agg(F.sum("x"), F.count("*")),
        "*Aggregate(>Project(Filter",
    ),
    "a filter of all rows": (
        lambda f, n: f.filter(scala("y") > 40).agg(F.sum("x"), F.count("*"), F.max(scala("y").cast("int"))),
        "*Aggregate(>Project(Project(Filter",
    ),
    "arguments and results": (
        lambda f, n: f.groupBy("k").agg(
            scala(F.sum(scala("x")) + F.min("y")).alias("u"), F.avg("y").alias("a")
        ),
        "Project(*Aggregate(>Project",
    ),
}


def shape(frame: DataFrame) -> str:
    """The nodes down to the first leaf, with a mark where the engine takes over (*) and where it is fed (>)."""
    words, runs = [], "-"
    for node in kq.explain(frame).nodes:
        mark = {"engine": "*", "Spark": "-", "hand-over": ">"}[node.runs]
        words.append(("" if mark in (runs, "-") else mark) + node.name)
        runs = mark
    return "(".join(words)


@pytest.mark.parametrize("name", QUERIES)
def test_an_expression_of_spark_keeps_no_other_with_it(facts: DataFrame, names: DataFrame, name: str) -> None:
    query, expected = QUERIES[name]
    frame = query(facts, names)
    assert shape(frame).startswith(expected)
    check(frame)


def test_a_term_that_may_raise_stays_above_one_of_spark(facts: DataFrame, names: DataFrame) -> None:
    with settings(facts.sparkSession, {"spark.sql.ansi.enabled": "true"}):
        guarded = pairs(facts, names).filter(
            (scala(F.col("x") + F.col("z")) > 0) & (F.col("y") % F.col("x") > F.col("z"))
        )
        assert shape(guarded).startswith("Project(Filter(*Join")
        assert "%" not in str(kq.explain(guarded)).split("== Stages")[-1]
        check(guarded)


def test_a_split_says_why(facts: DataFrame) -> None:
    frame = facts.groupBy("k").agg(scala(F.sum("x")).alias("u"))
    assert kq.explain(frame).reasons == [("Project", "a Scala or Java UDF is not supported")]


def test_nodes_that_this_spark_does_not_build_leave_the_plan_as_it_is(
    facts: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise Py4JError("no such constructor")

    monkeypatch.setattr(PlanBuilder, "project", fail)
    frame = facts.groupBy("k").agg(scala(F.sum("x")).alias("u"))
    assert shape(frame).startswith("Aggregate")
    check(frame)


def test_draws_see_the_partitions_of_spark(facts: DataFrame, names: DataFrame) -> None:
    frame = pairs(facts, names).filter((F.rand(3) < 0.5) & (F.col("y") > F.col("z")))
    check(frame)
    assert not kq.explain(frame).planned.parts
