"""All TPC-H-derived queries and the taxi query: whole in the engine, with Spark's answer."""

import pytest

import kquery_spark as kq
from benchmarks import tpch

# Rows that each query has at scale factor 0.01.
ROWS = {
    1: 4,
    2: 4,
    3: 10,
    4: 5,
    5: 5,
    6: 1,
    7: 4,
    8: 2,
    9: 173,
    10: 20,
    11: 359,
    12: 2,
    13: 33,
    14: 1,
    15: 1,
    16: 296,
    17: 1,
    18: 2,
    19: 1,
    20: 1,
    21: 1,
    22: 7,
}


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
    assert report.rows == ROWS[number]


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
