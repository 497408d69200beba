"""A Spark DataFrame over CSV files runs in the engine with the same answer."""

from __future__ import annotations

import json
import warnings

import pytest

import kquery_spark as kq
from benchmarks import taxi
from kquery_spark import kquery_plan
from kquery_spark.spark_bridge.session import zone_rules
from tests.accelerate.checks import check
from tests.conftest import settings
from tests.sources.compare import written

POLICY = "spark.sql.legacy.timeParserPolicy"


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


def time_files(spark, directory, kind, d, t):
    """A DataFrame of one file with a date, a timestamp and a timestamp without time zone."""
    text = f"{d},{t},{t}\n" if kind == "csv" else json.dumps({"d": d, "t": t, "n": t})
    path = str(written(directory, text, f"f.{kind}"))
    return spark.read.format(kind).schema("d DATE, t TIMESTAMP, n TIMESTAMP_NTZ").load(path)


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize(("d", "t"), [("2020-02-30", "2020-01-01"), ("2020-01-01", "2020-02-30 10:00:00")])
def test_spark_may_raise_errors_for_malformed_times(spark, tmp_path, kind, d, t):
    """With the policy EXCEPTION, the default of Spark 3.5, malformed strings that Spark 2 accepts are errors."""
    frame = time_files(spark, tmp_path, kind, d, t)
    query = frame.groupBy("d", "t").count()
    with settings(spark, {POLICY: "EXCEPTION"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in (query, query.transform(kquery_plan, when="always")):
            with pytest.raises(Exception, match="PARSE_DATETIME_BY_NEW_PARSER"):
                each.collect()
        check(frame.groupBy("n").count(), coverage=1.0)
    check(frame.groupBy("d", "t").count(), coverage=1.0)


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize(
    ("d", "t"), [("2020-1-31", "2020-01-31 10:00:00 GMT"), ("2020GMT-01-31", "2020GMT-01-31 10:00:00")]
)
def test_well_formed_times_do_not_depend_on_the_policy(spark, tmp_path, kind, d, t):
    frame = time_files(spark, tmp_path, kind, d, t)
    with settings(spark, {POLICY: "EXCEPTION"}):
        check(frame.groupBy("d", "t", "n").count(), coverage=1.0)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_the_column_of_malformed_lines_has_the_name_of_the_option(spark, tmp_path, kind):
    text = "1,2\nx,3\n" if kind == "csv" else '{"a":1}\n{"a":\n'
    path = str(written(tmp_path, text, f"f.{kind}"))
    reader = spark.read.format(kind).schema("a INT, _corrupt_record STRING")
    with settings(spark, {"spark.sql.columnNameOfCorruptRecord": "bad"}):
        named = reader.option("columnNameOfCorruptRecord", "_corrupt_record").load(path)
        check(named.groupBy("a", "_corrupt_record").count())


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_time_zones_of_options(spark, tmp_path, kind):
    """Java's short names are declined when the query is planned, and regions have the rules of the JVM."""
    text = "2020-07-01 10:00:00"
    path = str(written(tmp_path, f"{text}\n" if kind == "csv" else f'{{"t":"{text}"}}\n', f"f.{kind}"))
    reader = spark.read.format(kind).schema("t TIMESTAMP")
    zone = {"csv": "Antarctica/Troll", "json": "Antarctica/Casey"}[kind]
    for name, coverage in {"PST": 0.0, zone: 1.0, "+05:30": 1.0}.items():
        query = reader.option("timeZone", name).load(path).groupBy("t").count()
        check(query, coverage)
        assert ("the time zone PST is not supported" in str(kq.explain(query))) == (name == "PST")
    assert zone in zone_rules._followed
