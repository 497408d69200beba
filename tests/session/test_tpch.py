"""All TPC-H-derived queries and the taxi query: whole in the engine, with Spark's answer."""

import pytest

import kquery_spark as kq
from benchmarks import tpch


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_tpch_query_runs_whole_and_equals_spark(spark, tables, number):
    frame = spark.sql(tpch.query(number))
    explained = kq.explain(frame)
    assert explained.reasons == []
    assert explained.coverage == 1.0
    report = kq.verify(frame)
    assert report.ok, str(report)
    assert report.accelerated
    assert report.coverage == 1.0


def test_taxi_query_runs_whole_and_equals_spark(spark, taxi_dir):
    spark.read.parquet(str(taxi_dir / "parquet")).createOrReplaceTempView("tripdata")
    try:
        frame = spark.sql("SELECT passenger_count, MAX(fare_amount) FROM tripdata GROUP BY passenger_count")
        assert kq.explain(frame).reasons == []
        report = kq.verify(frame)
        assert report.ok, str(report)
        assert report.coverage == 1.0
        assert report.rows > 3
    finally:
        spark.catalog.dropTempView("tripdata")
