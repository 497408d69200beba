"""Nondeterministic expressions that a query has at several places: their values agree, as in Spark's answer."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.accelerate.python.python_functions import plain

CTES = {
    "function": "WITH t AS (SELECT id, k, draw(id) AS v FROM (SELECT id, max(byte) AS k FROM drawn_rows GROUP BY id))",
    "rand": "WITH t AS (SELECT id, k, rand() AS v FROM (SELECT id, max(byte) AS k FROM drawn_rows GROUP BY id))",
    "monotonically_increasing_id": (
        "WITH t AS (SELECT id, k, monotonically_increasing_id() AS v FROM (SELECT id, max(byte) AS k FROM drawn_rows GROUP BY id))"
    ),
}


READ = "SELECT a.v AS v, b.v AS w, a.n FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM t) a JOIN t b ON a.id = b.id"


@pytest.mark.parametrize("case", CTES)
def test_a_common_table_expression_is_computed_once(rows: DataFrame, spark: SparkSession, case: str) -> None:
    """Both places at which it is read have the same values, as in Spark, which runs the query."""
    spark.udf.register("draw", plain(lambda x: random.random(), "double").asNondeterministic())
    rows.createOrReplaceTempView("drawn_rows")
    query = spark.sql(f"{CTES[case]} {READ} WHERE b.k > 0")
    fast = query.transform(kquery_plan, when="always")
    answers: list[Any] = [frame.collect() for frame in (query, fast)]
    for answer in answers:
        assert len(answer) == 1190
        assert all(row["v"] == row["w"] for row in answer)
    explained = kq.explain(query)
    assert explained.coverage == 0
    assert any("at two places" in reason for _, reason in explained.reasons), explained.reasons
    spark.catalog.dropTempView("drawn_rows")


def test_what_spark_makes_of_an_accelerated_frame_draws_once(rows: DataFrame, spark: SparkSession) -> None:
    """Spark has to know of the function, so that it does not read a common table expression as two."""
    draw = plain(lambda x: random.random(), "double").asNondeterministic()
    drawn = rows.groupBy("id").agg(F.max("byte").alias("k")).select("id", "k", draw("id").alias("v"))
    kq.assert_accelerated(drawn)
    drawn.transform(kquery_plan, when="always").createOrReplaceTempView("drawn_frame")
    found = spark.sql(f"WITH t AS (SELECT * FROM drawn_frame) {READ} WHERE b.k > 0").collect()
    assert len(found) == 1190
    assert all(row["v"] == row["w"] for row in found)
    spark.catalog.dropTempView("drawn_frame")
