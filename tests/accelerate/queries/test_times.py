"""Times of a day in files, across shuffles, handed over by Spark, through functions and casts, and in results."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark import kquery_plan
from tests.accelerate.checks import MANY_TASKS, check
from tests.conftest import SPARK_VERSION, settings

pytestmark = pytest.mark.skipif(SPARK_VERSION < (4, 1), reason="Spark has no type of times before 4.1")

ROWS = """SELECT id, CAST(id % 3 AS INT) AS k, IF(id % 7 = 3, NULL, make_time(CAST(id % 24 AS INT), CAST(id % 60 AS INT), id % 60 + id / 64)) AS t,
 make_time(CAST(id * 5 % 24 AS INT), 0, CAST(id % 4 AS DECIMAL(16, 6))) AS hours, CAST(make_time(CAST(id % 24 AS INT), 1, id / 8) AS STRING) AS s,
 CAST(id * 1000 AS INT) AS n, DATE '1969-12-20' + CAST(id AS INT) AS d, make_dt_interval(0, 0, CAST(id AS INT) - 30, id / 4) AS i FROM RANGE(60)"""
EXTREMES = "SELECT * FROM VALUES (TIME '00:00:00', 'T1:2:3.5 pm'), (TIME '23:59:59.999999', '12:34'), (NULL, NULL) AS t(t, s)"
QUERIES = (
    "SELECT * FROM times WHERE id % 2 = 0",
    "SELECT t, hours, count(*) AS n FROM times GROUP BY t, hours",
    "SELECT k, min(t) AS a, max(t) AS b, first(hours) IS NULL AS c, count(DISTINCT t) AS e, max_by(id, t) AS g FROM times GROUP BY k",
    "SELECT t, hours, id FROM times ORDER BY t DESC NULLS FIRST, hours, id",
    "SELECT t, id FROM times ORDER BY t, id LIMIT 5",
    "SELECT a.id, b.id AS j, a.t FROM times a JOIN times b ON a.t = b.t AND a.hours <=> b.hours",
    "SELECT a.id FROM times a LEFT ANTI JOIN extremes b ON a.hours = b.t",
    "SELECT id, t FROM times WHERE t > TIME '12:00:00' AND hours <= TIME '15:00:02' AND t IS NOT NULL",
    "SELECT id FROM times WHERE hours = TIME '10:00:02' OR t IN (TIME '00:00:00', TIME '05:05:05.078125') OR t IS NULL",
    "SELECT id FROM times WHERE t BETWEEN TIME '03:00:00' AND TIME '04:30:00.5'",
    "SELECT DISTINCT hours FROM times",
    "SELECT * FROM (SELECT id, t, row_number() OVER (PARTITION BY k ORDER BY t DESC, id) AS r, max(hours) OVER (PARTITION BY k) AS m FROM times) WHERE r < 4",
    "SELECT max(t) AS a, min(t) AS b, count(t) AS n FROM extremes",
    "SELECT t FROM times UNION ALL SELECT t FROM extremes",
    "SELECT id, greatest(t, hours) AS a, coalesce(t, hours) AS b, IF(t < hours, t, NULL) AS c, array(t, hours) AS e, struct(t) AS f, map(id, t) AS g FROM times",
    "SELECT k, collect_list(t) IS NULL AS a, sort_array(collect_set(hours)) AS b FROM times GROUP BY k",
    "SELECT hash(t) AS a, xxhash64(t, hours) AS b FROM times",
    "SELECT id, hour(t) AS a, minute(t) AS b, second(t) AS c, extract(SECOND FROM t) AS e FROM times",
    "SELECT time_diff('minute', t, hours) AS a, time_diff('MICROSECOND', t, hours) AS b, time_trunc('HOUR', t) AS c, time_trunc('millisecond', t) AS e FROM times",
    "SELECT t - hours AS a, hours - t AS b, hours - INTERVAL '1.5' SECOND + INTERVAL '00:00:02' HOUR TO SECOND AS c FROM times WHERE hours > TIME '01:00:00' AND hours < TIME '23:00:00'",
    "SELECT id, t + i AS a FROM times WHERE hour(t) BETWEEN 1 AND 22",
    "SELECT make_timestamp_ntz(d, t) AS a, make_timestamp(d, t) AS b FROM times",
    "SELECT CAST(s AS TIME) AS c, try_cast(concat(s, IF(k = 1, 'x', '')) AS TIME) AS e FROM times",
    "SELECT CAST(t AS STRING) AS a, CAST(t AS INT) AS b, CAST(t AS BIGINT) AS c, CAST(t AS DECIMAL(20, 9)) AS e, CAST(t AS DECIMAL(7, 2)) AS f, concat('at ', t) AS g FROM times",
    "SELECT CAST(t AS STRING) AS a, CAST(s AS TIME) AS c FROM extremes",
    "SELECT k, CAST(t AS TIME(3)) AS a, CAST(CAST(t AS TIME(0)) AS TIME(6)) AS b, count(*) AS n FROM times GROUP BY ALL",
    "SELECT make_time(k, CAST(id AS INT), CAST(id / 4 AS DECIMAL(16, 6))) AS a FROM times",
)  # fmt: skip
SINCE_4_2 = (
    "SELECT time_from_seconds(n) AS a, time_from_seconds(CAST(n / 7 AS DECIMAL(12, 5))) AS b, time_from_millis(n) AS c, time_from_micros(id) AS e FROM times",
    "SELECT time_to_seconds(t) AS a, time_to_millis(t) AS b, time_to_micros(t) AS c FROM times",
)
SINCE_4_3 = (
    "SELECT to_time(s) AS a, try_to_time(concat(s, IF(k = 0, 'x', ''))) AS b FROM times",
    "SELECT CAST(CAST(s AS TIME(1)) AS STRING) AS a, CAST(make_timestamp(d, t) AS TIME) AS b, CAST(make_timestamp_ntz(d, t) AS TIME(2)) AS c FROM times",
    "SELECT t < CAST(hours AS TIME(2)) AS a, coalesce(t, CAST(hours AS TIME(0))) AS b FROM times",
)


def _queries():
    newer = ((4, 2), SINCE_4_2), ((4, 3), SINCE_4_3)
    return [*QUERIES, *(query for since, queries in newer if since <= SPARK_VERSION for query in queries)]


@pytest.fixture(scope="module")
def views(spark, tmp_path_factory):
    """Parquet files with times."""
    directory = tmp_path_factory.mktemp("times")
    with settings(spark, {"spark.sql.timeType.enabled": "true"}):
        for name, query in {"times": ROWS, "extremes": EXTREMES}.items():
            spark.sql(query).repartitionByRange(2, "t").write.parquet(str(directory / name))
            spark.read.parquet(str(directory / name)).createOrReplaceTempView(name)
        yield directory
    for name in ("times", "extremes"):
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize("query", _queries())
def test_columns_of_parquet_files(spark, views, query):
    with settings(spark, MANY_TASKS):
        check(spark.sql(query), coverage=1.0)


def test_what_stays_with_spark(spark, views):
    stays = {
        "SELECT time_from_seconds(n / 7.0D) AS a FROM times": (4, 2),
        "SELECT to_time(s, 'HH:mm:ss[.SSS]') AS a FROM times": (4, 1),
        "SELECT CAST(array(t) AS ARRAY<TIME(1)>) AS a FROM times": (4, 1),
    }
    frames = [spark.sql(query) for query, since in stays.items() if since <= SPARK_VERSION]
    path = str(views / "times")
    frames += [spark.read.schema("t TIME(3), k INT").parquet(path).where("k = 1")]
    if SPARK_VERSION < (4, 3):
        frames += [spark.sql("SELECT CAST(s AS TIME(1)) AS a, to_time(s) AS b FROM times")]
    for frame in frames:
        assert check(frame).coverage < 1


@pytest.mark.skipif(SPARK_VERSION < (4, 3), reason="Spark cannot read these times")
@pytest.mark.parametrize("dtype", [pa.time64("ns"), pa.struct([("t", pa.time64("ns"))])], ids=str)
def test_spark_reads_times_in_nanoseconds(spark, tmp_path, dtype):
    """Spark cuts the values of these files off after six decimals, but the engine would read them as they are."""
    nanos = [1, 3_600_000_000_123, 123_456_789, None]
    values = pa.array(nanos, pa.time64("ns"))
    is_struct = pa.types.is_struct(dtype)
    column = pa.StructArray.from_arrays([values], fields=list(dtype)) if is_struct else values
    pq.write_table(pa.table({"c": column, "k": [1, 2, 3, 4]}), tmp_path / "times.parquet")
    with settings(spark, {"spark.sql.timeType.enabled": "true"}):
        rows = spark.read.schema(f"c {'STRUCT<t: TIME>' if is_struct else 'TIME'}, k BIGINT").parquet(
            str(tmp_path)
        )
        time = "c.t" if is_struct else "c"
        frame = rows.selectExpr("k", f"CAST({time} AS STRING) AS s", f"{time} = TIME '00:00:00.123456' AS e")
        assert check(frame).coverage < 1
        check(rows.where("k > 1").select("k"), coverage=1.0)


def test_partitions_results_and_writes(spark, views):
    path = str(views / "partitioned")
    spark.sql("SELECT id, t, hours, k FROM times WHERE id < 9").write.partitionBy("t").parquet(path)
    check(spark.read.parquet(path).where("k = 1 AND (t > TIME '01:00:00' OR t IS NULL)"), coverage=1.0)
    frame = spark.sql(
        "SELECT t, CAST(hours AS TIME(0)) AS whole, array(t) AS a, struct(hours) AS s FROM times WHERE k = 1"
    )
    fast = frame.transform(kquery_plan, when="always")
    assert fast.schema == frame.schema
    assert sorted(map(str, fast.collect())) == sorted(map(str, frame.collect()))
    assert fast.toArrow().schema == frame.toArrow().schema
    assert sorted(fast.toPandas()["whole"]) == sorted(frame.toPandas()["whole"])
    fast.write.parquet(str(views / "written"))
    written = spark.read.parquet(str(views / "written"))
    assert written.dtypes == frame.dtypes
    assert sorted(map(str, written.collect())) == sorted(map(str, frame.collect()))
    handed_over = spark.createDataFrame(frame.select("t", "whole").collect(), "t TIME, whole TIME(0)")
    check(handed_over.groupBy("whole").agg({"t": "max"}), coverage=0.5)
