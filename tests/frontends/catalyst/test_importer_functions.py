"""Functions whose Catalyst classes have a form of their own run in the engine, and so does their SQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from tests.conftest import SPARK_BEFORE_4_3, settings

DATA = pa.table(
    {
        "s": ["2019/01/31", "a,b,c", None, "2020/02/29", "YQ=="],
        "b": [b"abc", b"", None, b"\x00\xff", b"x" * 100],
        "i": pa.array([1, 2, None, 3, 4], pa.int32()),
        "x": [1234.567, -0.5, None, 2.5, 1e6],
        "day": [dt.date(2019, 1, 31), dt.date(2020, 2, 29), None, dt.date(1969, 12, 31), dt.date(2021, 6, 1)],
        "ts": pa.array([0, 10**15, None, -1, 1_600_000_000_123_456], pa.int64()).cast(
            pa.timestamp("us", "UTC")
        ),
        "a": [[3, 1, None, 3], [], None, [2], [9, 8]],
        "w": [["x", None, "y"], [], None, ["z"], ["x"]],
        "n": [[[1], [2, 3]], [], None, [[None]], [None]],
    }
)
CALLS = (
    "try_to_timestamp(s, 'yyyy/MM/dd')", "try_to_date(s, 'yyyy/MM/dd')", "to_unix_timestamp(ts)", "unix_timestamp(day)", "make_timestamp(2020, i, 3, 4, 5, 6.25)",
    "timestampadd(MONTH, i, ts)", "timestampadd(HOUR, i, ts)", "timestampdiff(DAY, ts, timestamp'2020-01-01 00:00:00')", "date_add(day, i)",
    "datediff(MONTH, ts, timestamp'2020-01-01 00:00:00')", "from_utc_timestamp(ts, 'Asia/Tokyo')", "to_utc_timestamp(ts, 'Asia/Tokyo')", "dayname(day)", "monthname(day)",
    "split_part(s, ',', 2)", "split_part(s, '/', -1)", "base64(b)", "soundex(s)", "bin(i)", "format_number(x, 2)", "overlay(s, 'Z', 2)", "overlay(s placing 'Z' from 2 for 3)",
    "elt(2, s, 'other')", "nvl2(i, s, 'none')", "ifnull(s, 'none')", "sort_array(a)", "sort_array(a, false)", "array_max(a)", "array_min(a)", "array_distinct(a)",
    "concat(a, a)", "a || array(1L, i)", "reverse(a)", "concat(n, array(a))", "array_union(a, array(1L, 7L))", "array_except(a, array(3L))", "array_intersect(a, array(3L, 2L))", "arrays_overlap(a, array(3L))", "array_position(a, 3)", "array_remove(a, 3)",
    "slice(a, 1, 2)", "flatten(n)", "array_join(w, '-')", "array_join(w, '-', '?')", "array_repeat(i, 2)", "sequence(1, i)", "sequence(day, date_add(day, 3))", "cardinality(a)",
)  # fmt: skip


@pytest.fixture(scope="module")
def values(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("values")
    pq.write_table(DATA, folder / "v.parquet")
    spark.read.parquet(str(folder)).createOrReplaceTempView("function_values")
    yield str(folder)
    spark.catalog.dropTempView("function_values")


@pytest.fixture(scope="module")
def whole(spark, values):
    """All calls in one query, which Spark and the engine answer once."""
    frame = spark.sql(f"SELECT {', '.join(f'{c} AS c{i}' for i, c in enumerate(CALLS))} FROM function_values")
    reasons = kq.explain(frame).reasons
    assert [r.endswith("Slice stays with it") for _, r in reasons] == ([True] if SPARK_BEFORE_4_3 else [])
    report = kq.verify(frame)
    assert report.ok, report
    return frame.toArrow().to_pydict()


@pytest.mark.parametrize("place", range(len(CALLS)), ids=CALLS)
def test_the_same_call_in_our_own_sql(whole, values, place):
    context = kq.ExecutionContext()
    context.register_parquet("function_values", values)
    ours = context.sql(f"SELECT {CALLS[place]} AS c FROM function_values").to_arrow().column("c").to_pylist()
    assert ours == whole[f"c{place}"]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("try_to_timestamp(s, 'MMM yyyy')", "date format"),
        ("format_number(x, '#,##0')", "FormatNumber"),
        ("array_distinct(array(x))", "ArrayDistinct"),
        ("luhn_check(s)", "Java method"),
        ("sequence(day, day, interval 1 month)", "interval"),
    ],
)
def test_what_is_not_exact_stays_with_spark(spark, values, call, reason):
    frame = spark.sql(f"SELECT {call} AS c, count(*) AS n FROM function_values GROUP BY 1")
    assert any(reason in sentence for _, sentence in kq.explain(frame).reasons)


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
    folder = tmp_path_factory.mktemp("odd")
    pq.write_table(ODD, folder / "odd.parquet")
    spark.read.parquet(str(folder)).createOrReplaceTempView("odd_values")
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
        with pytest.warns(kq.FallbackWarning, match="end of the range"):
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
