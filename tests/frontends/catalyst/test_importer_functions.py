"""Functions whose Catalyst classes have a form of their own run in the engine, and so does their SQL."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import kquery_spark as kq

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
    "array_union(a, array(1L, 7L))", "array_except(a, array(3L))", "array_intersect(a, array(3L, 2L))", "arrays_overlap(a, array(3L))", "array_position(a, 3)", "array_remove(a, 3)",
    "slice(a, 1, 2)", "flatten(n)", "array_join(w, '-')", "array_join(w, '-', '?')", "array_repeat(i, 2)", "sequence(1, i)", "sequence(day, date_add(day, 3))", "cardinality(a)",
)  # fmt: skip


@pytest.fixture(scope="module")
def values(spark, tmp_path_factory):
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("values")
    pq.write_table(DATA, folder / "v.parquet")
    spark.read.parquet(str(folder)).createOrReplaceTempView("function_values")
    yield str(folder)
    spark.catalog.dropTempView("function_values")


@pytest.fixture(scope="module")
def whole(spark, values):
    """All calls in one query, which Spark and the engine answer once."""
    frame = spark.sql(f"SELECT {', '.join(f'{c} AS c{i}' for i, c in enumerate(CALLS))} FROM function_values")
    assert kq.explain(frame).reasons == []
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
