"""Columns of intervals in files, across shuffles, handed over by Spark, and in results that Spark takes back."""

from __future__ import annotations

import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.accelerate.checks import MANY_TASKS, check
from tests.conftest import settings

ROWS = """SELECT id, CAST(id % 3 AS INT) AS k, make_ym_interval(0, CAST(IF(id % 7 = 3, NULL, id * 5 - 40) AS INT)) AS ym,
 CAST(make_ym_interval(CAST(id % 5 - 2 AS INT), 0) AS INTERVAL YEAR) AS y, INTERVAL '3' MONTH * CAST(id % 4 AS INT) AS q,
 CAST(make_ym_interval(0, CAST(id AS INT)) AS INTERVAL MONTH) AS m, make_dt_interval(CAST(id % 6 - 3 AS INT), 0, 0, id / 4) AS dt,
 CAST(make_dt_interval(CAST(id % 4 AS INT)) AS INTERVAL DAY) AS days FROM RANGE(60)"""
EXTREMES = """SELECT * FROM VALUES (INTERVAL '178956970-7' YEAR TO MONTH, INTERVAL '106751991 04:00:54.775807' DAY TO SECOND),
 (INTERVAL '-178956970-8' YEAR TO MONTH, INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND), (NULL, NULL) AS t(ym, dt)"""
QUERIES = (
    "SELECT * FROM intervals WHERE id % 2 = 0",
    "SELECT ym, y, m, dt, days, count(*) AS n FROM intervals GROUP BY ym, y, m, dt, days",
    "SELECT k, sum(ym) AS a, avg(y) AS b, min(m) AS c, max(q) AS d, sum(dt) AS e, avg(dt) AS f, min(days) AS g FROM intervals GROUP BY k",
    "SELECT ym, dt, id FROM intervals ORDER BY ym DESC, dt, id",
    "SELECT a.id, b.id AS j, a.ym, a.days FROM intervals a JOIN intervals b ON a.ym = b.q AND a.days <=> b.days",
    "SELECT id, dt FROM intervals WHERE ym > INTERVAL '1' YEAR AND dt < INTERVAL '2' DAY AND y >= INTERVAL '0' YEAR AND days IS NOT NULL",
    "SELECT id FROM intervals WHERE m = INTERVAL '59' MONTH OR dt = INTERVAL '0 00:00:12' DAY TO SECOND OR ym IS NULL",
    "SELECT id, ym + y AS a, m - q AS b, CAST(y AS STRING) AS c, CAST(q AS STRING) AS d, CAST(m AS INT) AS e FROM intervals WHERE k = 1",
    "SELECT DISTINCT y, q FROM intervals",
    "SELECT * FROM (SELECT id, ym, row_number() OVER (PARTITION BY k ORDER BY m DESC) AS r, sum(y) OVER (PARTITION BY k) AS s FROM intervals) WHERE r < 4",
    "SELECT max(ym) AS a, min(ym) AS b, max(dt) AS c, min(dt) AS d, count(*) AS n FROM extremes",
    "SELECT ym, dt, count(*) AS n FROM extremes WHERE ym < INTERVAL '0' YEAR OR dt > INTERVAL '0' DAY OR ym IS NULL GROUP BY ym, dt",
)  # fmt: skip


@pytest.fixture(scope="module")
def views(spark, tmp_path_factory):
    """Parquet files with intervals of every kind."""
    directory = tmp_path_factory.mktemp("intervals")
    for name, query in {"intervals": ROWS, "extremes": EXTREMES}.items():
        spark.sql(query).repartitionByRange(2, "ym").write.parquet(str(directory / name))
        spark.read.parquet(str(directory / name)).createOrReplaceTempView(name)
    spark.sql(ROWS).write.partitionBy("ym", "days").parquet(str(directory / "partitioned"))
    yield directory
    for name in ("intervals", "extremes"):
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize("query", QUERIES)
def test_columns_of_parquet_files(spark, views, query):
    with settings(spark, MANY_TASKS):
        check(spark.sql(query), coverage=1.0)


def test_partition_columns(spark, views):
    schema = spark.sql(ROWS).select("id", "k", "ym", "days").schema
    frame = spark.read.schema(schema).parquet(str(views / "partitioned"))
    check(frame.groupBy("ym").count(), coverage=1.0)
    check(frame.where("ym > INTERVAL '1' YEAR OR days = INTERVAL '2' DAY").groupBy("k").count(), coverage=1.0)


def test_rows_that_spark_hands_over(spark):
    rows = spark.sql(ROWS).localCheckpoint()
    check(rows.groupBy("y", "days").agg({"ym": "max", "dt": "sum"}))
    joined = rows.alias("a").join(rows.alias("b"), "ym").selectExpr("ym", "a.m", "b.m", "b.dt")
    report = check(joined)
    assert report.accelerated
    check(spark.sql(f"SELECT k, max(ym), reverse(collect_list(id)) FROM ({ROWS}) GROUP BY k"))


def test_results_are_of_spark_s_own_types(spark, views, monkeypatch):
    monkeypatch.setenv("PYSPARK_YM_INTERVAL_LEGACY", "1")  # else PySpark collects none
    query = spark.sql("SELECT ym, y, m, dt, days FROM intervals WHERE id < 9 ORDER BY id")
    fast = kquery_plan(query, when="always", fallback="error")
    assert fast.schema == query.schema
    assert fast.collect() == query.collect()
    assert fast.take(2) == query.take(2)
    assert fast.count() == 9
    strings = "CAST(ym AS STRING)", "CAST(y AS STRING)", "CAST(m AS STRING)", "CAST(days AS STRING)"
    assert fast.selectExpr(*strings).collect() == query.selectExpr(*strings).collect()
    path = str(views / "written")
    fast.write.parquet(path)
    assert spark.read.parquet(path).schema == query.schema
    assert sorted(map(str, spark.read.parquet(path).collect())) == sorted(map(str, query.collect()))


TOO_LONG = (
    "ym + INTERVAL '1' MONTH",
    "dt - INTERVAL '-1' SECOND",
    "-ym",
    "-dt",
    "abs(ym)",
    "abs(dt)",
    "ym * 2",
    "ym / 0.1D",
    "sum(ym * k)",
    "avg(ym * k)",
)


@pytest.mark.parametrize("ansi", ("false", "true"))
@pytest.mark.filterwarnings("ignore::kquery_spark.FallbackWarning")
def test_too_long_intervals_are_errors_in_every_mode(spark, views, ansi):
    rows = "(SELECT *, 1 AS k FROM extremes UNION ALL SELECT *, 1 FROM extremes)"
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        for call in TOO_LONG:
            some = "WHERE ym > INTERVAL '0' MONTH" if "(ym *" in call else ""
            frame = spark.sql(f"SELECT {call} AS a FROM {rows} {some}")
            assert kq.explain(frame).coverage == 1.0, call
            for query in (frame, kquery_plan(frame, when="always")):
                with pytest.raises(Exception, match=r"(?i)overflow|out of range|not in"):
                    query.selectExpr("hash(a)").collect()


def test_explain_says_what_stays(spark, views):
    reasons = [
        reason
        for _, reason in kq.explain(spark.sql("SELECT array(ym) AS a FROM intervals WHERE k = 1")).reasons
    ]
    assert any("year-month intervals inside of arrays" in reason for reason in reasons), reasons
