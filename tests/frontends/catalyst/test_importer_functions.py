"""Functions that the data, a zone or a pattern sends back to Spark, and those that it must not."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import kquery_spark as kq
from tests.conftest import settings

ODD = pa.table(
    {
        "s": ["aab", "a\r\n", "\r\n", "x\ry", "a\n"],
        "x": pa.array(
            [Decimal("1e-38"), Decimal("0.5"), None, Decimal(0), Decimal("0.1")], pa.decimal128(38, 38)
        ),
        "d": [float("nan"), -0.0, -1.0, None, 0.0],
        "n": pa.array([2**31 - 1] * 5, pa.int32()),
        "day": pa.array([0] * 5, pa.date32()),
        "first": pa.array([-(2**63)] * 5, pa.timestamp("us", "UTC")),
        "last": pa.array([2**63 - 1] * 5, pa.timestamp("us", "UTC")),
    }
)


@pytest.fixture(scope="module")
def odd(spark, tmp_path_factory):
    directory = tmp_path_factory.mktemp("odd")
    pq.write_table(ODD, directory / "odd.parquet")
    spark.read.parquet(str(directory)).createOrReplaceTempView("odd_values")
    yield
    spark.catalog.dropTempView("odd_values")


@pytest.mark.parametrize("ansi", [True, False])
def test_text_of_decimals_has_an_exponent_without_ansi(spark, odd, ansi):
    with settings(spark, {"spark.sql.ansi.enabled": str(ansi).lower()}):
        frame = spark.sql(
            "SELECT CAST(x AS STRING), concat('v', x), CAST(array(x) AS ARRAY<STRING>), try_cast(x AS STRING) "
            "FROM odd_values"
        )
        assert kq.explain(frame).reasons == []
        assert kq.verify(frame).ok


@pytest.mark.parametrize(
    "call",
    [
        "s RLIKE 'a[^x]$'",
        r"regexp_extract(s, '(a\\s?)$', 1)",
        "sort_array(array(coalesce(d, 1.0D), 0.0D, -0.0D))",
    ],
)
def test_what_the_data_decides_goes_back_to_spark(spark, odd, call):
    frame = spark.sql(f"SELECT {call} AS c FROM odd_values")
    with pytest.warns(kq.FallbackWarning, match="Unsupported"):
        ours = frame.transform(kq.kquery_plan, when="always").collect()
    assert str(ours) == str(frame.collect())


@pytest.mark.parametrize(
    "call",
    [
        "add_months(day, n)", "day + INTERVAL 178956970 YEAR", "date_from_unix_date(n) - DATE'1960-01-01'", "last + INTERVAL 1 DAY", "first - TIMESTAMP'2020-02-29 12:00:00'",
        "date_trunc('minute', first)", "date_trunc('year', first)", "unix_timestamp(date_from_unix_date(n))", "months_between(first, last)",
        "from_utc_timestamp(last, '+05:00')", "make_date(n div 300, 1, 1)", "timestampdiff(MICROSECOND, first, last)",
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::kquery_spark.FallbackWarning")
def test_dates_past_the_range_raise_as_in_spark(spark, odd, call):
    frame = spark.sql(f"SELECT {call} AS c FROM odd_values")
    for query in (frame, frame.transform(kq.kquery_plan, when="always")):
        with pytest.raises(Exception, match=r"(?i)overflow"):
            query.collect()


def test_fields_of_the_first_timestamp_in_a_zone(spark, odd):
    with settings(spark, {"spark.sql.session.timeZone": "America/Los_Angeles"}):
        frame = spark.sql("SELECT hour(first), year(first), CAST(first AS STRING) FROM odd_values")
        with pytest.warns(kq.FallbackWarning, match="limits of bigint"):
            assert frame.transform(kq.kquery_plan, when="always").collect() == frame.collect()


@pytest.mark.parametrize(
    "call",
    [
        "split(s, '^a')", "s RLIKE '(a{100}){100}'", "s RLIKE '[z-a]'", "s RLIKE 'a{2,1}'", r"regexp_replace(s, 'a', '\\\\$x')",
        r"regexp_replace(s, 'a', '\\\\\\')", *(f"from_utc_timestamp(last, '{zone}')" for zone in ("+19:00", "+18:01", "+05:60", "+530", "+05:3000")),
    ],
)  # fmt: skip
def test_what_is_declined_when_the_plan_is_made(spark, odd, call):
    assert kq.explain(spark.sql(f"SELECT {call} AS c FROM odd_values")).reasons


def test_offsets_as_spark_spells_them(spark, odd):
    zones = ("+5:30", "+05:3", "+5", "+0530", "-053015", "UTC+5", "GMT-05:30", "+18:00")
    calls = ", ".join(f"from_utc_timestamp(timestamp_seconds(n), '{zone}')" for zone in zones)
    frame = spark.sql(f"SELECT {calls} FROM odd_values")
    assert kq.explain(frame).reasons == []
    assert kq.verify(frame).ok


def test_statistics_of_pandas_on_spark(spark):
    functions = pytest.importorskip("pyspark.sql.internal").InternalFunction
    rows = spark.range(40).selectExpr("id % 7 AS k", "IF(id % 5 = 0, NULL, id * 1.5D) AS x", "sqrt(id) AS y")
    x, y = rows.x, rows.y
    calls = [f(x, n) for f in (functions.stddev, functions.var) for n in (0, 1)]
    frame = (
        rows.where("k < 6 OR x IS NULL").groupBy("k").agg(*calls, *(functions.covar(x, y, n) for n in (0, 1)))
    )
    assert kq.explain(frame).reasons == []
    assert kq.verify(frame).ok
    assert "ddof = 2" in str(kq.explain(rows.groupBy("k").agg(functions.var(x, 2))).reasons)


def test_fields_put_into_structs_and_dropped(spark):
    point = F.struct(F.col("id").alias("x"), (F.col("id") * 2).alias("y"))
    frame = spark.range(9).select(point.withField("z", F.lit(1)).alias("a"), point.dropFields("x").alias("b"))
    assert kq.explain(frame).reasons == []
    assert kq.verify(frame).ok
