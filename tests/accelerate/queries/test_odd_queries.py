"""DataFrames, views and settings of every odd shape, side by side with Spark; odd statements are in tests/sql."""

from __future__ import annotations

import warnings

import pandas as pd
import pyarrow as pa
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import Unsupported
from tests.accelerate.checks import check
from tests.conftest import settings

ZOO = """SELECT * FROM VALUES
 (1, 10Y, 1.5D, 'a', DATE'2020-01-01', TIMESTAMP'2021-03-28 01:30:00', 12.34BD, true, ARRAY(1, 2, NULL), MAP('k', 1),
  NAMED_STRUCT('x', 1, 'y', 'p')),
 (2, 20Y, DOUBLE('NaN'), 'B', DATE'1999-12-31', TIMESTAMP'2021-10-31 01:30:00', -0.01BD, false, ARRAY(),
  MAP('k', 2, 'j', 3), NAMED_STRUCT('x', 2, 'y', 'q')),
 (3, NULL, -0.0D, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
 (3, 30Y, 0.0D, 'ü', DATE'1601-01-01', TIMESTAMP'1960-01-01 00:00:00', 99.99BD, true, ARRAY(3), MAP(),
  NAMED_STRUCT('x', CAST(NULL AS INT), 'y', CAST(NULL AS STRING))),
 (NULL, 20Y, DOUBLE('infinity'), 'a', DATE'2020-02-29', TIMESTAMP'2020-02-29 12:00:00', 0.00BD, false, ARRAY(NULL),
  MAP('z', NULL), NAMED_STRUCT('x', 5, 'y', 'p'))
 AS t(k, b, f, s, d, ts, m, o, a, mp, st)"""
NUMBERS = """SELECT id, CAST(id % 7 AS INT) k, CAST(id % 13 AS STRING) s, CAST(id / 3 AS DECIMAL(10, 2)) m,
 IF(id % 5 = 0, NULL, id % 11) v FROM RANGE(200)"""
VIEWS = ("odd_t", "odd_u", "odd_e", "odd_legacy", "odd_ansi")


@pytest.fixture(scope="module")
def zoo(spark, tmp_path_factory):
    """Views of five odd rows, of 200 plain ones, of none, and two made under one ANSI setting each."""
    directory = tmp_path_factory.mktemp("odd")
    for name, query in {"odd_t": ZOO, "odd_u": NUMBERS, "odd_e": f"{ZOO} WHERE false"}.items():
        rows = spark.sql(query)
        rows.repartition(2).write.parquet(str(directory / name))
        spark.read.schema(rows.schema).parquet(str(directory / name)).createOrReplaceTempView(name)
    with settings(spark, {"spark.sql.ansi.enabled": "false"}):
        spark.sql(
            "CREATE TEMP VIEW odd_legacy AS SELECT k, k / 0 dz, CAST(s AS INT) ci, 2147483647 + k ov FROM odd_t"
        )
    spark.sql("CREATE TEMP VIEW odd_ansi AS SELECT k, b / k dz, k + 1 ov FROM odd_t")
    yield directory
    for view in VIEWS:
        spark.catalog.dropTempView(view)


def test_views_under_other_ansi_settings(spark, zoo):
    joined = "SELECT l.dz, l.ci, l.ov, a.dz z FROM odd_legacy l JOIN odd_ansi a ON l.k = a.k"
    check(spark.sql(joined), coverage=1.0)
    with settings(spark, {"spark.sql.ansi.enabled": "false"}):
        check(spark.sql("SELECT * FROM odd_ansi"), coverage=1.0)


def nested_case(spark, depth):
    """As people write it with ``when(...).otherwise(...)`` in a loop."""
    case = F.lit(-1)
    for i in range(depth):
        case = F.when(F.col("id") == i, F.lit(i)).otherwise(case)
    return spark.table("odd_u").select(case.alias("x")).groupBy("x").count()


def many_columns(spark):
    frame = spark.table("odd_u")
    for i in range(100):
        frame = frame.withColumn(f"c{i}", F.col("id") + i)
    return frame


PROGRAMS = {
    "names with dots": lambda s: s.table("odd_u").selectExpr("id AS `a.b`", "s AS `日本`", "v AS `A B`").groupBy("`a.b`", "`日本`")
        .agg(F.sum("`A B`").alias("sum(`q.r`)")),
    "names twice": lambda s: s.table("odd_u").selectExpr("k AS a", "v AS a").distinct(),
    "a self-join": lambda s: s.table("odd_u").alias("a").join(s.table("odd_u").alias("b"), F.col("a.id") == F.col("b.k"))
        .select("a.*", "b.*"),
    "duplicates dropped": lambda s: s.table("odd_u").dropDuplicates(["k"]).select("k"),
    "union by name": lambda s: s.table("odd_u").select("id", "k").unionByName(
        s.table("odd_u").select("k", "s"), allowMissingColumns=True),
    "NULLs filled": lambda s: s.table("odd_t").select("k", "f", "s").na.fill(0).na.replace("a", "z"),
    "a hundred columns": many_columns,
    "a CASE in a CASE": lambda s: nested_case(s, 40),
    "a range": lambda s: s.range(0, 10_000, 1, 4).selectExpr("id % 10 g", "id").groupBy("g").agg(F.sum("id")),
    "a pivot": lambda s: s.table("odd_t").groupBy("s").pivot("d").agg(F.sum("m"), F.first("ts")),
    "an empty range": lambda s: s.range(5, 5).groupBy().count(),
    "pandas rows": lambda s: s.createDataFrame(pd.DataFrame({"x": [1, 2, 2], "y": [1.0, None, 3.0]}))
        .join(s.table("odd_u"), F.col("x") == F.col("k")).groupBy("y").count(),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_whole_in_the_engine(spark, zoo, name):
    check(PROGRAMS[name](spark), coverage=1.0)


PARTLY = {
    "observed": lambda s: s.table("odd_u").observe("o", F.count(F.lit(1)).alias("n")).groupBy("k").count(),
    "checkpointed": lambda s: s.table("odd_u").localCheckpoint().groupBy("k").agg(F.sum("v")),
    "repartitioned": lambda s: s.table("odd_u").groupBy("k").count().repartition(3, "k"),
    "coalesced": lambda s: s.table("odd_u").groupBy("k").count().coalesce(1),
    "a window without its constant order": lambda s: s.sql(
        """SELECT a.k, x FROM odd_t a, LATERAL (SELECT v x FROM odd_u b WHERE b.k = a.k ORDER BY b.id LIMIT 1)"""),
    "cached": lambda s: s.table("odd_u").where("id > 3").cache().groupBy("k").agg(F.sum("v")),
}  # fmt: skip


def test_frames_that_cannot_be_the_engines_are_declined_when_planning(spark, zoo):
    wide = "SELECT k, count(*) OVER (ORDER BY CAST(m AS DECIMAL(38, 2)) RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM odd_t"
    days = "SELECT k, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) FROM odd_t"
    hours = days.replace("1 DAY", "1 HOUR")
    with settings(spark, {"spark.sql.session.timeZone": "Europe/Berlin"}):
        assert any("decimal(38,2)" in reason for _, reason in kq.explain(spark.sql(wide)).reasons)
        assert any("the time zone UTC only" in reason for _, reason in kq.explain(spark.sql(days)).reasons)
        check(spark.sql(hours), coverage=1.0)
    check(spark.sql(days), coverage=1.0)


@pytest.mark.parametrize("name", PARTLY)
def test_programs_partly_in_the_engine(spark, zoo, name):
    try:
        assert check(PARTLY[name](spark)).coverage < 1
    finally:
        spark.catalog.clearCache()


def test_names_that_differ_in_case(spark, zoo):
    with settings(spark, {"spark.sql.caseSensitive": "true"}):
        frame = spark.table("odd_u").selectExpr("k AS a", "v AS A")
        check(frame.groupBy("a").agg(F.sum("A")), coverage=1.0)
        check(frame, coverage=1.0)
        # the files say "id": Spark does not find it now
        check(spark.read.schema("ID long, k int").parquet(str(zoo / "odd_u")).groupBy("ID").count())


@pytest.mark.parametrize("schema", ["ID long, K int", "id string, k int"])
def test_a_schema_unlike_the_files_is_noticed_before_anything_runs(spark, zoo, schema):
    """A write could not be run again."""
    frame = spark.read.schema(schema).parquet(str(zoo / "odd_u")).groupBy("k").agg(F.max("id"))
    ((node, reason),) = kq.explain(frame).reasons
    assert node == "LogicalRelation"
    assert "parquet files are not supported" in reason


def test_a_query_that_spark_itself_cannot_plan(spark, zoo):
    """Constant folding raises; the error belongs to the action, as without the engine."""
    frame = spark.sql("SELECT ARRAY(1, 2)[5] FROM odd_u")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast = frame.transform(kquery_plan, when="always")
    with pytest.raises(Exception, match="INVALID_ARRAY_INDEX"):
        fast.collect()
    with pytest.raises(Unsupported, match="Spark cannot plan this query itself"):
        frame.transform(kquery_plan, fallback="error")


def test_streams_are_left_alone(spark):
    frame = spark.readStream.format("rate").load().groupBy("value").count()
    assert frame.transform(kquery_plan) is frame
    assert "streaming" in str(kq.explain(frame).reasons)


def test_a_unread_column_may_be_of_any_type(spark, tmp_path):
    path = str(tmp_path / "types")
    spark.sql("SELECT id, id % 3 g, parse_json('1') v, INTERVAL 2 MONTH i FROM RANGE(10)").write.parquet(path)
    check(spark.read.parquet(path).groupBy("g").agg(F.sum("id")), coverage=1.0)
    check(spark.read.parquet(path).selectExpr("g", "v::int x").groupBy("x").count())


def test_orc_tables(spark, zoo, tmp_path):
    path = str(tmp_path / "orc")
    spark.table("odd_t").where("d IS NULL OR d > '1990-01-01'").write.orc(path)
    frame = spark.read.orc(path)
    check(frame.select("k", "b", "f", "s", "d", "m", "o", "a", "mp", "st"), coverage=1.0)
    check(frame.groupBy("s").agg(F.sum("m"), F.max("d"), F.max("ts")), coverage=1.0)
    with settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        check(spark.read.orc(path).selectExpr("k", "ts", "CAST(ts AS STRING) x", "hour(ts) h"), coverage=1.0)
    parts = str(tmp_path / "parts")
    spark.table("odd_u").write.partitionBy("k", "s").orc(parts)
    read = spark.read.orc(parts)
    check(read.where("k > 2 AND id > 50").groupBy("k", "s").agg(F.sum("v"), F.sum("m")), coverage=1.0)
    evolved = spark.read.schema("id long, extra string, k int, s string").orc(parts)
    check(evolved.groupBy("extra", "k").count(), coverage=1.0)
    for schema in ("ID long", "id string"):
        assert check(spark.read.schema(schema).orc(parts).groupBy().agg(F.max("id"))).coverage < 1


def test_orc_files_without_names_and_padded_columns_are_read_by_spark(spark, tmp_path):
    (tmp_path / "plain").mkdir()
    pa_orc.write_table(pa.table({"_col0": [1, 2], "_col1": ["a", None]}), str(tmp_path / "plain" / "x.orc"))
    unnamed = spark.read.schema("id long, s string").orc(str(tmp_path / "plain"))
    assert check(unnamed.groupBy("s").agg(F.sum("id"))).coverage < 1
    spark.sql("CREATE TABLE odd_chars (k INT, c CHAR(5), v VARCHAR(4)) USING orc")
    try:
        spark.sql("INSERT INTO odd_chars VALUES (1, 'ab', 'ab'), (2, 'abcde', 'x'), (3, NULL, NULL)")
        assert check(spark.sql("SELECT c, count(*), max(v) FROM odd_chars GROUP BY c")).coverage < 1
        check(spark.sql("SELECT k, count(*) FROM odd_chars GROUP BY k"), coverage=1.0)
    finally:
        spark.sql("DROP TABLE odd_chars")


def test_where_nothing_is_read_spark_is_left_to_it(spark):
    frame = spark.range(1000).groupBy((F.col("id") % 7).alias("g")).count()
    assert not kq.explain(frame).accelerated or frame.transform(kquery_plan) is frame


def test_handed_over_rows_weigh_as_much_as_spark_expects(spark, zoo):
    cached = spark.table("odd_u").where("id is not null").cache()
    try:
        cached.count()
        text = str(kq.explain(cached.groupBy("k").count()))
        handed = int(text.split(" rows handed over")[0].split()[-1].replace(",", ""))
        assert 0 < handed < 1000
    finally:
        cached.unpersist()


def test_conditions_of_many_terms(spark, zoo, tmp_path):
    values = {f"c{n}": [n, None if n < 300 else n, None] for n in range(600)}
    pq.write_table(pa.table({"id": [1, 2, 3], **values}), str(tmp_path / "wide.parquet"))
    wide = spark.read.parquet(str(tmp_path))
    for frame in (wide.dropna(), wide.dropna(thresh=301), wide.dropna(how="all", subset=list(values))):
        check(frame.selectExpr("id", "c0 + c599 AS c"), coverage=1.0)
    patterns = ", ".join(f"'{n}1%'" for n in range(500))
    check(spark.sql(f"SELECT id, upper(s) AS s FROM odd_u WHERE s LIKE ANY ({patterns})"), coverage=1.0)
    items = ", ".join(f"v + {n}" for n in range(500))
    check(spark.sql(f"SELECT id, upper(s) AS s FROM odd_u WHERE id IN ({items})"), coverage=1.0)


def test_dropna_evaluates_the_columns_after_a_null(spark, zoo):
    frame = spark.sql("SELECT IF(k < 3, NULL, k) AS k, 1 / (k - 2) AS q FROM odd_t").dropna()
    for query in (frame, frame.transform(kquery_plan, when="always")):
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            query.collect()
