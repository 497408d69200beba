"""A Spark DataFrame over CSV files runs in the engine with the same answer."""

from __future__ import annotations

import kquery_spark as kq
from benchmarks import taxi
from kquery_spark import kquery_plan


def test_the_taxi_query(spark, taxi_dir):
    spark.read.schema(taxi.DDL).option("header", True).csv(str(taxi_dir / "csv")).createOrReplaceTempView(
        "taxi_csv"
    )
    try:
        df = spark.sql(
            "SELECT passenger_count, month, MAX(fare_amount) AS fare, COUNT(*) AS n, MIN(tpep_pickup_datetime) AS first "
            "FROM taxi_csv WHERE month > 3 AND trip_distance > 1 GROUP BY passenger_count, month"
        )
        assert kq.explain(df).coverage == 1
        fast = df.transform(lambda d: kquery_plan(d, when="always"))
        assert fast.schema == df.schema
        assert sorted(map(str, fast.collect())) == sorted(map(str, df.collect()))
    finally:
        spark.catalog.dropTempView("taxi_csv")


def test_malformed_lines_fall_back_to_spark(spark, tmp_path):
    (tmp_path / "f.csv").write_text("1,a\nx,b\n")
    df = spark.read.schema("a int, b string").option("mode", "DROPMALFORMED").csv(str(tmp_path))
    assert not kq.explain(df.groupBy("b").count()).accelerated
