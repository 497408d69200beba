"""Answers that once differed from Spark's, as small as they got."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import ArithmeticException, NumberFormatException

import kquery_spark as kq
from kquery_spark.errors import Unsupported
from kquery_spark.functions.casts.floats import java_text
from kquery_spark.physical.windows.sliding import sums_in_order
from tests.accelerate.checks import check, view_of_files


def same(frame):
    """The engine's rows are Spark's to the last bit."""
    fast = frame.transform(kq.kquery_plan, when="always").toArrow()
    assert fast.equals(frame.toArrow()), f"{fast.to_pydict()} is not {frame.toArrow().to_pydict()}"


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
        expected = []
        for a, b in zip(low, high, strict=True):
            total = 0.0
            for value in values[a:b].tolist():
                total += value
            expected.append(total)
        actual = sums_in_order(values, low, high)
        assert np.array_equal(actual.view(np.int64), np.array(expected).view(np.int64))


def test_columns_handed_over_may_share_a_name(spark, tmp_path):
    spark.udf.register(
        "found_same", lambda x: {Decimal(x): x}, "map<decimal(20,0),bigint>"
    )  # falls back to Spark
    with view_of_files(spark, "found_id", "SELECT id, id % 7 AS g FROM RANGE(100)", tmp_path):
        report = check(
            spark.sql(
                """SELECT x.g, count(DISTINCT x.id) AS n, max(y.id) AS m FROM found_id x JOIN found_id y
                   ON map_values(found_same(x.g + y.id))[0] = y.g GROUP BY x.g"""
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


@pytest.mark.parametrize("hint", ["BROADCAST(q)", "MERGE(q)", "SHUFFLE_HASH(q)"])
def test_rows_without_a_match_can_raise_below_a_join(spark, tmp_path, hint):
    """Spark computes the quotient for all rows in these joins, also for the one whose divisor is 0."""
    with (
        view_of_files(spark, "found_few", "SELECT id AS k FROM RANGE(5)", tmp_path),
        view_of_files(spark, "found_divisors", "SELECT id AS k, id - 50 AS n FROM RANGE(300)", tmp_path),
    ):
        sql = f"""SELECT /*+ {hint} */ f.k, quotient FROM found_few f
                  JOIN (SELECT k, 10 DIV n AS quotient FROM found_divisors) q ON f.k = q.k"""
        query = spark.sql(sql)
        assert kq.explain(query).coverage == 1
        for frame in (query, query.transform(kq.kquery_plan, when="always")):
            with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
                frame.collect()


@pytest.mark.parametrize(
    "condition",
    [
        "CAST(code AS INT) > 5 AND name > 'A'",
        "name IS NOT NULL AND 10 DIV n > 1",
        "n DIV m IS NOT NULL AND CAST(code AS INT) > 1",
        "10 DIV n IS NOT NULL AND n > 0",
        "name IS NOT NULL AND 10 DIV n > 1 AND length(name) = 1",
        "10 DIV n > (SELECT min(n) FROM found_codes) AND id <> 20",
        "10 DIV n > (SELECT min(n) FROM found_codes) AND name = 'a'",
        "id IN (SELECT id FROM found_codes WHERE name IS NOT NULL AND 10 DIV n > 1)",
    ],
)
def test_conditions_see_the_rows_that_they_see_in_spark(spark, tmp_path, condition):
    """Spark tests a column for NULL right before the first condition that reads it, whatever the query says."""
    rows = """SELECT id, IF(id = 20, 'bad', '5') AS code, IF(id = 20, NULL, 'a') AS name, IF(id = 20, 0, 2) AS n,
              IF(id = 20, NULL, 1) AS m FROM RANGE(300)"""
    with view_of_files(spark, "found_codes", rows, tmp_path):
        query = spark.sql(f"SELECT name, count(*) AS c FROM found_codes WHERE {condition} GROUP BY name")
        assert kq.explain(query).coverage == 1
        for frame in (query, query.transform(kq.kquery_plan, when="always")):
            with pytest.raises((ArithmeticException, NumberFormatException)):
                frame.collect()


@pytest.mark.parametrize(
    "condition",
    [
        "name = 'a' AND 10 DIV n > (SELECT min(n) FROM found_guards) AND code = '5'",
        "n > 0 AND 10 DIV n IS NOT NULL",
    ],
)
def test_conditions_do_not_see_rows_that_they_do_not_see_in_spark(spark, tmp_path, condition):
    rows = "SELECT id, '5' AS code, IF(id = 20, NULL, 'a') AS name, IF(id = 20, 0, 2) AS n FROM RANGE(300)"
    with view_of_files(spark, "found_guards", rows, tmp_path):
        assert check(
            spark.sql(f"SELECT name, sum(id) AS s FROM found_guards WHERE {condition} GROUP BY name")
        )


@pytest.mark.parametrize(
    "condition",
    [
        "10 DIV length(name) IS NOT NULL AND CAST(code AS INT) > 1",
        "concat(CAST(10 DIV n AS STRING), name) IS NOT NULL AND id <> 20",
    ],
)
def test_a_test_for_null_that_spark_may_move_is_left_to_spark(spark, tmp_path, condition):
    rows = """SELECT id, IF(id = 20, 'bad', '5') AS code, IF(id = 20, '', 'a') AS name, IF(id = 20, 0, 2) AS n
              FROM RANGE(300)"""
    with view_of_files(spark, "found_moved", rows, tmp_path):
        query = spark.sql(f"SELECT name, count(*) AS c FROM found_moved WHERE {condition} GROUP BY name")
        assert "IS NOT NULL of an expression that can raise" in str(kq.explain(query))
        for frame in (query, query.transform(kq.kquery_plan, when="always")):
            with pytest.raises((ArithmeticException, NumberFormatException)):
                frame.collect()


REPARTITIONS = {
    "repartition": lambda frame: frame.repartition(4),
    "repartition by a column": lambda frame: frame.repartition(4, "g"),
    "coalesce": lambda frame: frame.coalesce(1),
    "rebalance": lambda frame: frame.hint("rebalance"),
}


@pytest.mark.parametrize("name", REPARTITIONS)
def test_what_is_computed_before_a_repartitioning_can_raise(spark, tmp_path, name):
    """A CASE above it does not read the column for the row whose divisor is 0, for which Spark computes it first."""
    with view_of_files(
        spark, "found_cases", "SELECT id, id % 7 AS g, id - 50 AS n FROM RANGE(300)", tmp_path
    ):

        def sums(quotient, value):
            below = REPARTITIONS[name](spark.table("found_cases").selectExpr("id", "g", f"{quotient} AS q"))
            return below.selectExpr("g", f"{value} AS v").groupBy("g").sum("v")

        assert check(sums("n + 1", "q * 2")).coverage == 1
        query = sums("10 DIV n", "CASE WHEN id < 40 THEN q ELSE 0 END")
        assert "an error of a column computed before a repartitioning" in str(kq.explain(query))
        for frame in (query, query.transform(kq.kquery_plan, when="always")):
            with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
                frame.collect()


def test_void_columns_meet_in_joins_as_in_sparks(spark, tmp_path):
    directory = tmp_path / "rows"
    spark.sql("SELECT id AS n FROM RANGE(3)").write.json(str(directory))
    rows = spark.read.schema("n BIGINT, v VOID, w VOID").json(str(directory))
    rows.createOrReplaceTempView("found_void")
    for sql in (
        "SELECT a.n, b.n AS m FROM found_void a LEFT JOIN found_void b ON a.v <=> b.w AND a.n < b.n",
        "SELECT v FROM found_void INTERSECT SELECT w FROM found_void",
    ):
        report = kq.verify(spark.sql(sql))
        assert report.ok, report
        assert "void columns" in str(kq.explain(spark.sql(sql)))
