"""Open plans applied to Spark's DataFrames: what is imported, what Spark computes, and tables that change meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType

import kquery_spark as kq
from kquery_spark.errors import PlanError, Unsupported

COUNTED = kq.sql_plan("SELECT k, count(*) AS n, sum(v) AS s FROM input GROUP BY k")


def by_spark(frame: DataFrame) -> DataFrame:
    return frame.groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("s"))


def counted_by_spark(frame: DataFrame) -> list[Any]:
    return sorted(by_spark(frame).collect())


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().optimizedPlan().toString())


@pytest.fixture(scope="module")
def path(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = Path(tmp_path_factory.mktemp("open")) / "rows"
    spark.range(100).selectExpr("id % 3 AS k", "id AS v").coalesce(1).write.parquet(str(directory))
    return str(directory)


def test_a_query_over_files_is_imported(spark: Any, path: str) -> None:
    frame = spark.read.parquet(path).where("v > 10")
    counted = frame.transform(COUNTED)
    assert sorted(counted.collect()) == counted_by_spark(frame)
    assert "Relation" not in plan_of(counted), "the engine reads the files"


def test_python_functions_are_imported(spark: Any, path: str) -> None:
    factor = spark.sparkContext.broadcast(7)
    times = udf(lambda v: v * factor.value, LongType(), useArrow=False)
    frame = spark.read.parquet(path).select("k", times("v").alias("v"))
    counted = frame.transform(COUNTED)
    assert sorted(counted.collect()) == counted_by_spark(frame)
    assert "Relation" not in plan_of(counted), "the engine reads the files"


def test_spark_computes_a_query_that_it_has_to_run(spark: Any, path: str) -> None:
    rows = spark.read.parquet(path).withColumn("r", F.rand())
    frame = rows.union(rows).where("r >= 0").drop("r")
    assert sorted(frame.transform(COUNTED).collect()) == counted_by_spark(frame)


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_table_that_changes_before_the_action(spark: Any, path: str, partitioned: bool) -> None:
    spark.sql("DROP TABLE IF EXISTS changing_input")
    writer = spark.read.parquet(path).write
    (writer.partitionBy("k") if partitioned else writer).saveAsTable("changing_input")
    try:
        frame = spark.table("changing_input").select("k", "v")
        counted, expected = frame.transform(COUNTED), by_spark(frame)
        spark.sql("INSERT INTO changing_input (k, v) VALUES (1, 1000), (9, 9)")
        assert sorted(counted.collect()) == sorted(expected.collect())
        assert len(expected.collect()) == 4
    finally:
        spark.sql("DROP TABLE changing_input")


def test_a_plan_that_is_nested_too_deeply_raises_plan_error(spark: Any) -> None:
    plan = kq.plan()
    for _ in range(400):
        plan = plan.select("k")
    with pytest.raises(PlanError, match="nested too deeply"):
        spark.range(3).selectExpr("id AS k").transform(plan)


def test_an_input_with_duplicate_column_names_is_declined(spark: Any) -> None:
    frame = spark.sql("SELECT 1 AS a, 2 AS a")
    with pytest.raises(Unsupported, match="several columns named a is not supported; rename them"):
        frame.transform(kq.sql_plan("SELECT count(*) FROM input"))
