"""Structs and arrays as keys and in comparisons, and the time windows that Spark makes structs of."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.accelerate.checks import check, view_of_files

ROWS = """SELECT * FROM VALUES
 (1, named_struct('x', 1, 'f', 0.0D, 's', 'a'), array(1, 2), array(0.0D), TIMESTAMP'2021-03-28 00:59:59.999999'),
 (2, named_struct('x', 1, 'f', -0.0D, 's', 'a'), array(1, 2, NULL), array(-0.0D), TIMESTAMP'2021-03-28 01:00:00'),
 (3, named_struct('x', 1, 'f', double('NaN'), 's', 'a'), array(), array(double('NaN'), NULL), TIMESTAMP'1960-01-01 00:00:01'),
 (4, named_struct('x', NULL, 'f', NULL, 's', NULL), array(NULL), array(), TIMESTAMP'2021-03-28 01:04:00'),
 (5, NULL, NULL, NULL, NULL),
 (6, named_struct('x', NULL, 'f', NULL, 's', NULL), array(NULL), array(double('-infinity'), 1D), TIMESTAMP'2021-03-28 01:05:00'),
 (7, named_struct('x', -5, 'f', 1.5D, 's', ''), array(-7), array(double('NaN'), NULL), TIMESTAMP'0001-01-03 00:00:00'),
 (8, named_struct('x', -5, 'f', 1.5D, 's', 'a\\0'), array(-7, 3), array(1D), TIMESTAMP'2021-03-28 01:12:00'),
 (9, named_struct('x', -5, 'f', 1.5D, 's', 'a\\0b'), array(2147483647), array(-1D), TIMESTAMP'2021-03-28 01:12:00')
 AS t(k, st, a, fa, ts)"""

WHOLE = {
    "structs grouped": "SELECT st, count(*), sum(k) FROM nk GROUP BY st",
    "arrays grouped": "SELECT a, count(*) c FROM nk GROUP BY a",
    "floats in arrays grouped": "SELECT fa, count(*) c FROM nk GROUP BY fa",
    "deep values grouped": "SELECT d, count(*) FROM (SELECT named_struct('p', array(st), 'q', a) d FROM nk) GROUP BY d",
    "distinct": "SELECT DISTINCT st, fa FROM nk",
    "counted distinct": "SELECT k % 2, count(DISTINCT st), count(DISTINCT a, fa) FROM nk GROUP BY 1",
    "union": "SELECT st, a FROM nk UNION SELECT st, a FROM nk",
    "intersect": "SELECT st, a FROM nk INTERSECT SELECT st, a FROM nk WHERE k > 2",
    "except all": "SELECT fa FROM nk EXCEPT ALL SELECT fa FROM nk WHERE k IN (1, 3)",
    "joined by structs": "SELECT x.k, y.k FROM nk x JOIN nk y ON x.st = y.st",
    "joined by arrays": "SELECT x.k, y.k, y.a FROM nk x LEFT JOIN nk y ON x.a = y.a AND x.k < y.k",
    "sorted by structs": "SELECT k, st FROM nk ORDER BY st DESC, k",
    "sorted by arrays": "SELECT k, a, fa FROM nk ORDER BY a, fa NULLS LAST, k",
    "compared": """SELECT x.k, y.k, x.st = y.st, x.st < y.st, x.a >= y.a, x.fa <=> y.fa, x.fa > y.fa, x.st <> y.st
        FROM nk x CROSS JOIN nk y""",
    "compared with constants": "SELECT k, a = array(1, 2), a < array(1), st.f = 0 FROM nk WHERE fa >= array(0D)",
    "extremes": "SELECT k % 3 g, max(st), min(st), max(a), min(fa), max_by(k, st), min_by(k, a) FROM nk GROUP BY 1",
    "latest of each": "SELECT k % 3 g, max(struct(ts, k)).k FROM nk GROUP BY 1",
    "gathered": "SELECT k % 2 g, size(collect_set(named_struct('s', st.s, 'a', a))) n FROM nk GROUP BY 1",
    "partitions": "SELECT k, row_number() OVER (PARTITION BY st ORDER BY a, k) r, rank() OVER (ORDER BY st) q FROM nk",
    "largest over windows": "SELECT k, max(st) OVER (ORDER BY k), min(a) OVER (ORDER BY k ROWS 2 PRECEDING) FROM nk",
    "casts of arrays": """SELECT k, CAST(a AS ARRAY<BIGINT>) x, CAST(a AS ARRAY<STRING>) y, CAST(fa AS ARRAY<FLOAT>) z,
        CAST(array(a, NULL) AS ARRAY<ARRAY<DOUBLE>>) d, try_cast(a AS ARRAY<TINYINT>) t FROM nk""",
    "casts of structs": """SELECT k, CAST(st AS STRUCT<p: BIGINT, q: STRING, r: STRING>) x, CAST(array(st) AS ARRAY<STRUCT<a: STRING,
        b: FLOAT, c: BINARY>>) y, CAST(NULL AS STRUCT<a: INT>) z FROM nk""",
    "casts that fail": "SELECT CAST(a AS ARRAY<TINYINT>) FROM nk",
    "casts behind NULL": "SELECT k, CASE WHEN k < 9 THEN CAST(a AS ARRAY<TINYINT>) END x FROM nk",
    "unions of arrays": "SELECT a FROM nk UNION ALL SELECT array(k * 10000000000L) FROM nk",
    "time windows": "SELECT window.start s, window.end e, sum(k), max(ts) FROM nk GROUP BY window(ts, '10 minutes')",
    "windows whole": "SELECT window, count(*) FROM nk GROUP BY window(ts, '1 hour', '1 hour', '7 minutes')",
    "sliding windows": "SELECT window, k % 2, sum(k) FROM nk GROUP BY window(ts, '10 minutes', '4 minutes'), 2",
    "window times": "SELECT window_time(w) t, s FROM (SELECT window w, sum(k) s FROM nk GROUP BY window(ts, '5 minutes'))",
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(spark, tmp_path_factory):
    with view_of_files(spark, "nk", ROWS, tmp_path_factory.mktemp("rows")):
        yield


@pytest.mark.parametrize("name", WHOLE)
def test_whole_in_the_engine(spark, rows, name):
    check(spark.sql(WHOLE[name]), coverage=1.0)


def test_many_rows_in_many_tasks(spark, rows):
    frame = spark.range(0, 3000, 1, 3).selectExpr(
        "named_struct('a', id % 7, 'b', array(string(id % 5), NULL, 'x')) st", "id"
    )
    frame.write.mode("overwrite").saveAsTable("nested_many")
    try:
        many = spark.table("nested_many")
        check(many.groupBy("st").agg(F.sum("id"), F.max("st")), coverage=1.0)
        check(
            many.join(many.groupBy("st").agg(F.min("id").alias("m")), "st").groupBy("m").count(), coverage=1.0
        )
    finally:
        spark.sql("DROP TABLE nested_many")


def test_signs_of_zeros_in_keys(spark, rows):
    """Equal keys are shown as one form, which equality of floats does not see."""
    frame = spark.sql("SELECT DISTINCT fa, st FROM nk WHERE k IN (1, 2)")
    fast = frame.transform(kquery_plan, when="always")
    assert sorted(map(str, fast.collect())) == sorted(map(str, frame.collect()))


def test_session_windows_stay_with_spark(spark, rows):
    """Their plan looks like a grouping by two times, and is none."""
    frame = spark.sql("SELECT session_window, sum(k) FROM nk GROUP BY session_window(ts, '6 minutes')")
    report = check(frame, coverage=0.0)
    assert "session windows stay with Spark" in str(kq.explain(frame).reasons)
    assert report.coverage < 1


def test_maps_are_no_keys(spark):
    frame = spark.sql("SELECT map('a', id) m, count(*) FROM range(3) GROUP BY 1")
    check(frame, coverage=0.0)
