"""Answers that once differed from Spark's, as small as they got."""

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import Unsupported
from kquery_spark.functions.casts.floats import java_text
from kquery_spark.physical.windows.sliding import sums_in_order
from tests.accelerate.checks import check, view_of_files
from tests.conftest import settings


def same(frame):
    """The engine's rows are Spark's to the last bit."""
    fast = frame.transform(kq.kquery_plan, when="always").toArrow()
    assert fast.equals(frame.toArrow()), f"{fast.to_pydict()} is not {frame.toArrow().to_pydict()}"


def test_seconds_with_a_fraction_keep_it(spark, tmp_path):
    with view_of_files(spark, "found_n", "SELECT id - 3 AS n FROM RANGE(7)", tmp_path):
        for value in ("n + 0.5", "n + 0.5D", "CAST(n + 0.25 AS FLOAT)", "n"):
            report = check(
                spark.sql(f"SELECT n, unix_micros(timestamp_seconds({value})) AS t FROM found_n ORDER BY n")
            )
            assert (report.coverage == 1.0) == (value == "n")


@pytest.mark.parametrize(("zone", "day"), [("America/Havana", "2015-11-20"), ("Pacific/Apia", "1892-07-08")])
def test_a_truncated_time_is_sparks_where_midnight_happens_twice(spark, tmp_path, zone, day):
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        days = (
            f"SELECT TIMESTAMP'{day} 12:00:00' + make_dt_interval(CAST(id AS INT) - 20) AS ts FROM RANGE(40)"
        )
        with view_of_files(spark, "found_ts", days, tmp_path):
            for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR"):
                frame = spark.sql(
                    f"SELECT ts, unix_seconds(date_trunc('{unit}', ts)) AS t FROM found_ts ORDER BY ts"
                )
                with warnings.catch_warnings():  # which midnight it is depends on Spark's version
                    warnings.simplefilter("ignore", kq.FallbackWarning)
                    same(frame)


def test_the_lowest_timestamp_is_one(spark, tmp_path):
    with view_of_files(spark, "found_s", "SELECT '-290308-12-21 19:59:05.224192' AS s", tmp_path):
        same(spark.sql("SELECT unix_micros(try_cast(s AS TIMESTAMP)) AS a FROM found_s"))


def test_digits_that_depend_on_the_jvm_are_not_guessed():
    for value in (2.0**-44, 2.0**-1016, 1e-323, 8e-323):
        with pytest.raises(Unsupported, match="version of the JVM"):
            java_text(value)
    for value in (2.0**-96, 3e-45):
        with pytest.raises(Unsupported, match="version of the JVM"):
            java_text(float(np.float32(value)), single=True)
    assert [java_text(v) for v in (5e-324, 0.5, 2.0**-20, 1e-300)] == [
        "4.9E-324", "0.5", "9.5367431640625E-7", "1.0E-300",
    ]  # fmt: skip
    assert java_text(float(np.float32(1e-45)), single=True) == "1.4E-45"


FRAMES = (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 4 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 2 PRECEDING AND 3 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)


def test_floats_of_a_window_are_added_in_their_order(spark, tmp_path):
    random = np.random.default_rng(3)
    rows = 3000
    values = random.choice([1e17, -1e17, 1.0, 0.1, -0.0, 7.0, 1e300, -1e300], rows)
    large = random.choice([2**62, -(2**62), 1, 7], rows)
    file = str(tmp_path / "sums.parquet")
    columns = {"i": np.arange(rows), "g": random.integers(0, 40, rows) ** 2 // 40, "l": large}
    nulls = random.random(rows) < 0.1
    pq.write_table(pa.table({**columns, "f": pa.array(values, mask=nulls)}), file)
    spark.read.parquet(file).createOrReplaceTempView("found_sums")
    for partition in ("PARTITION BY g ", ""):
        for frame in FRAMES:
            same(
                spark.sql(
                    f"""SELECT i, sum(f) OVER w AS s, avg(f) OVER w AS a, avg(l) OVER w AS l FROM found_sums
                        WINDOW w AS ({partition}ORDER BY i {frame}) ORDER BY i"""
                )
            )


def test_sums_in_order_of_every_shape():
    random = np.random.default_rng(4)
    values = random.choice([1e17, -1e17, 1.0, 0.1, -0.0], 4000)
    sizes = [0, 1, 2, 600, 1500, 3, 0, 40, 700, 1, 1153]
    starts = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
    assert len(starts) == 4000
    rows = np.arange(4000)
    ends = np.repeat(np.cumsum(sizes), sizes)
    for low, high in (
        (starts, rows + 1),
        (starts, np.maximum(starts, rows - 1)),
        (starts, ends),
        (np.maximum(starts, rows - 5), np.minimum(ends, rows + 3)),
        (np.minimum(ends, rows + 2), np.minimum(ends, rows + 9)),
    ):
        wanted = []
        for a, b in zip(low, high, strict=True):
            total = 0.0
            for value in values[a:b].tolist():
                total += value
            wanted.append(total)
        found = sums_in_order(values, low, high)
        assert np.array_equal(found.view(np.int64), np.array(wanted).view(np.int64))


def test_short_integers_do_not_leave_their_type_in_a_range_frame(spark, tmp_path):
    with view_of_files(
        spark, "found_b", "SELECT CAST(v AS TINYINT) AS b FROM VALUES (122), (127) AS t(v)", tmp_path
    ):
        sql = (
            "SELECT b, count(*) OVER (ORDER BY b RANGE BETWEEN CURRENT ROW AND 5 FOLLOWING) AS n FROM found_b"
        )
        assert check(spark.sql(sql)).coverage < 1


def test_a_later_branch_of_case_that_no_row_reaches(spark, tmp_path):
    with view_of_files(spark, "found_case", "SELECT id + 1 AS x FROM RANGE(9)", tmp_path):
        check(
            spark.sql(
                """SELECT CASE WHEN x > 0 THEN 10 div x WHEN x < 0 THEN 10 div x END AS two,
                          CASE WHEN x > 0 THEN 10 div x WHEN x < 0 THEN 1 WHEN x = 0 THEN 0 ELSE 5 div x END AS more,
                          coalesce(x, 10 div x, x div 2) AS c FROM found_case"""
            ),
            coverage=1.0,
        )


def test_columns_handed_over_may_share_a_name(spark, tmp_path):
    spark.udf.register("found_same", lambda x: x, "bigint")
    with view_of_files(spark, "found_id", "SELECT id, id % 7 AS g FROM RANGE(100)", tmp_path):
        report = check(
            spark.sql(
                """SELECT x.g, count(DISTINCT x.id) AS n, max(y.id) AS m FROM found_id x JOIN found_id y
                   ON found_same(x.g + y.id) = y.g GROUP BY x.g"""
            )
        )
        assert 0 < report.coverage < 1


@pytest.mark.parametrize("name", ["utf8", "UTF_8", "utf-8"])
def test_spellings_of_the_encoding_of_csv_that_spark_refuses(spark, tmp_path, name):
    (tmp_path / "a.csv").write_text("1,a\n2,b\n")
    for option in ("encoding", "charset"):
        frame = spark.read.schema("a int, b string").option(option, name).csv(str(tmp_path))
        if name == "utf-8":
            assert check(frame).accelerated
        else:
            assert frame.transform(kq.kquery_plan, when="always") is frame
            with pytest.raises(Exception, match="charset"):
                frame.collect()


def test_a_csv_block_of_comments_with_quotes(spark, tmp_path):
    (tmp_path / "a.csv").write_text('a,b\n# he said "x"\n')
    read = spark.read.schema("a string, b string").option("comment", "#").option("header", True)
    frame = read.csv(str(tmp_path))
    assert frame.transform(kq.kquery_plan, when="always", fallback="error").collect() == frame.collect() == []


def test_a_cast_to_an_interval_of_days_cuts_off_the_hours(spark, tmp_path):
    with view_of_files(spark, "found_hours", "SELECT id FROM RANGE(48)", tmp_path):
        hours = "INTERVAL '1' HOUR * id"
        check(spark.sql(f"SELECT id, CAST({hours} AS INTERVAL DAY) AS d FROM found_hours"))
        check(spark.sql(f"SELECT count(*) AS n FROM found_hours GROUP BY CAST({hours} AS INTERVAL DAY)"))
        whole = spark.sql(f"SELECT id, CAST({hours} AS INTERVAL DAY TO SECOND) AS d FROM found_hours")
        check(whole, coverage=1.0)


NINES = "99999999999999999999999999999999999999"


FRAMES = ["", "ROWS 1 PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"]


@pytest.mark.parametrize(
    ("ansi", "frames", "values", "call"),
    [
        (True, FRAMES, f"(1, {NINES}BD), (2, -{NINES}BD), (3, -7BD)", "try_sum(x)"),
        (False, FRAMES[:1], f"(1, {NINES}BD), (2, -{NINES}BD), (3, -7BD)", "try_sum(x)"),
        (True, FRAMES[:1], f"(1, {NINES}BD), (2, -{NINES}BD), (3, -7BD)", "avg(x)"),
        (False, FRAMES[2:], f"(1, {NINES}BD), (2, 5BD), (3, -{NINES}BD)", "try_sum(x)"),
        (True, FRAMES[:1], "(1, 9223372036854775807), (2, 1), (3, -5)", "try_sum(x)"),
        (False, FRAMES, "(1, 9223372036854775807), (2, -1), (3, -5)", "sum(x)"),
        (True, FRAMES[2:], "(1, 9223372036854775807), (2, -1), (3, -5)", "sum(x)"),
        (True, FRAMES[:1], "(1, CAST(4e17 AS BIGINT)), (2, CAST(5e17 AS BIGINT)), (3, NULL)", "sum(x)"),
    ],
)
def test_sums_of_a_window_that_leave_their_type_on_the_way(spark, tmp_path, ansi, frames, values, call):
    query = f"SELECT CAST(i AS INT) AS i, x FROM VALUES {values} AS v(i, x)"
    with (
        view_of_files(spark, "found_large", query, tmp_path),
        settings(spark, {"spark.sql.ansi.enabled": str(ansi)}),
    ):
        for rows in frames:
            frame = spark.sql(f"SELECT i, {call} OVER (ORDER BY i {rows}) AS s FROM found_large ORDER BY i")
            with warnings.catch_warnings():  # such sums are Spark's to make
                warnings.simplefilter("ignore", kq.FallbackWarning)
                found = outcome(frame.transform(kq.kquery_plan, when="always"))
            assert found == outcome(frame)


def outcome(frame) -> object:
    try:
        return frame.toArrow().to_pylist()
    except Exception as error:
        return str(error).partition("]")[0]


@pytest.mark.parametrize("places", [-400, -309, 309, 320, 400])
def test_rounding_to_places_no_number_has(spark, tmp_path, places):
    with view_of_files(
        spark, "found_thirds", "SELECT id, id / 3D AS x, 1e-320D * id AS y FROM RANGE(9)", tmp_path
    ):
        check(
            spark.sql(
                f"""SELECT round(x, {places}) AS a, bround(y, {places}) AS b, round(id, {places}) AS c,
                    round(CAST(id AS INT), {places}) AS d FROM found_thirds"""
            ),
            coverage=1.0,
        )


def test_the_group_of_a_pattern_that_nothing_matches(spark, tmp_path):
    query = "SELECT IF(id = 3, NULL, CAST(id AS STRING)) AS s FROM RANGE(5)"
    with view_of_files(spark, "found_digits", query, tmp_path):
        sql = "SELECT regexp_extract(s, 'x', 1) AS a, regexp_extract(s, '(x)', -2) AS b FROM found_digits"
        check(spark.sql(sql), coverage=1.0)
        frame = spark.sql("SELECT regexp_extract(s, '2', 1) AS a FROM found_digits")
        with pytest.raises(Exception, match="REGEX_GROUP_INDEX"):
            frame.transform(kq.kquery_plan, when="always", fallback="error").collect()
        with pytest.raises(Exception, match="REGEX_GROUP_INDEX"):
            frame.collect()


def test_arguments_that_a_constant_one_leaves_out_are_not_evaluated(spark, tmp_path):
    with view_of_files(spark, "found_texts", "SELECT concat('a', id) AS s FROM RANGE(5)", tmp_path):
        for call in (
            "trunc(CAST(s AS DATE), 'DAY')",
            "trunc(CAST(s AS DATE), NULL)",
            "date_trunc('xx', CAST(s AS TIMESTAMP))",
            "elt(1, s, CAST(CAST(s AS INT) AS STRING))",
        ):
            check(spark.sql(f"SELECT {call} AS a FROM found_texts"), coverage=1.0)


def test_void_columns_meet_in_joins_as_in_sparks(spark, tmp_path):
    folder = tmp_path / "rows"
    spark.sql("SELECT id AS n FROM RANGE(3)").write.json(str(folder))
    rows = spark.read.schema("n BIGINT, v VOID, w VOID").json(str(folder))
    rows.createOrReplaceTempView("found_void")
    for sql in (
        "SELECT a.n, b.n AS m FROM found_void a LEFT JOIN found_void b ON a.v <=> b.w AND a.n < b.n",
        "SELECT v FROM found_void INTERSECT SELECT w FROM found_void",
    ):
        report = kq.verify(spark.sql(sql))
        assert report.ok, report
        assert "void columns" in str(kq.explain(spark.sql(sql)))
