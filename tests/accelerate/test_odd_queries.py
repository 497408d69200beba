"""Queries of every odd shape, side by side with Spark: as much as possible in the engine, never another answer."""

from __future__ import annotations

import warnings

import pandas as pd
import pyarrow as pa
import pyarrow.orc as pa_orc
import pytest
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import Unsupported
from tests.accelerate.checks import check
from tests.conftest import SPARK_BEFORE_4_3, settings

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
    folder = tmp_path_factory.mktemp("odd")
    for name, query in {"odd_t": ZOO, "odd_u": NUMBERS, "odd_e": f"{ZOO} WHERE false"}.items():
        rows = spark.sql(query)
        rows.repartition(2).write.parquet(str(folder / name))
        spark.read.schema(rows.schema).parquet(str(folder / name)).createOrReplaceTempView(name)
    with settings(spark, {"spark.sql.ansi.enabled": "false"}):
        spark.sql(
            "CREATE TEMP VIEW odd_legacy AS SELECT k, k / 0 dz, CAST(s AS INT) ci, 2147483647 + k ov FROM odd_t"
        )
    spark.sql("CREATE TEMP VIEW odd_ansi AS SELECT k, b / k dz, k + 1 ov FROM odd_t")
    yield folder
    for view in VIEWS:
        spark.catalog.dropTempView(view)


WHOLE = {
    "views under other ANSI settings": "SELECT l.dz, l.ci, l.ov, a.dz z FROM odd_legacy l JOIN odd_ansi a ON l.k = a.k",
    "try beside ANSI": """SELECT try_add(k, 2147483647) a, k + 1 b, try_divide(k, 0) c, try_cast(s AS INT) d,
        try_sum(k) OVER () x FROM odd_t""",
    "overflow": "SELECT k + 2147483647 FROM odd_t",
    "division by zero": "SELECT k / (k - k) FROM odd_t WHERE k IS NOT NULL",
    "a bad cast": "SELECT CAST(s AS INT) FROM odd_t",
    "decimals past 38 digits": "SELECT sum(m * 1e36BD) FROM odd_t",
    "decimals past 38 digits in a window": "SELECT k, sum(m * 1e36BD) OVER () FROM odd_t",
    "short circuits": "SELECT count(*) FROM odd_u WHERE (k = 0 OR 10 / k > 1) AND CASE WHEN k = 0 THEN 1 ELSE 7 / k END > 0",
    "bad casts beside NULL": """SELECT i / n, i div n, i % n, pmod(i, n), try_divide(i, n), n + i, substring('abc', n, i), replace(s, nullif(s, s), r)
        FROM (SELECT s, nullif(length(s), 1) n, CAST(s AS INT) i, CAST(CAST(s AS INT) AS STRING) r FROM odd_t)""",
    "a bad cast beside the NULL of a dividend": "SELECT nullif(length(s), 1) / CAST(s AS INT) FROM odd_t",
    "floats in a list": "SELECT k FROM odd_t WHERE f IN ('NaN', 0.0)",
    "floats not in a list": "SELECT k FROM odd_t WHERE f NOT IN (0.0D, 7.0D)",
    "narrow floats in a list": "SELECT k FROM odd_t WHERE CAST(f AS FLOAT) IN (0.0F, 1.5F)",
    "floats compared": "SELECT k, f > 1, f = 'NaN', f = 0.0, f <=> -0.0D FROM odd_t WHERE f >= 0.0D",
    "floats grouped": "SELECT f, count(*) FROM odd_t GROUP BY f",
    "floats joined": "SELECT a.k, b.k, a.f FROM odd_t a JOIN odd_t b ON a.f = b.f",
    "floats in set operations": "SELECT f FROM odd_t INTERSECT (SELECT double('NaN') UNION SELECT -0.0D)",
    "zeros of both signs": "SELECT k, f * 0.0D, f * -0.0D, coalesce(f, 0.0D), coalesce(f, -0.0D) FROM odd_t",
    "averages of bigint": "SELECT k, avg(l), try_avg(l), avg(DISTINCT l) FROM (SELECT k, CASE b WHEN 10 THEN 4611686018427387905 WHEN 20 THEN -4611686018427387904 END l FROM odd_t) GROUP BY GROUPING SETS ((k), ())",
    "correlation with a constant": "SELECT corr(f, 1.0D), corr(1.0D, f), corr(f, k), corr(k, b) FROM odd_t",
    "floats ordered": "SELECT f, rank() OVER (ORDER BY f DESC) r FROM odd_t ORDER BY f DESC, k",
    "lateral views": """SELECT k, x, kk, vv FROM odd_t LATERAL VIEW OUTER explode(a) AS x
        LATERAL VIEW OUTER explode(mp) AS kk, vv""",
    "exploded structs": "SELECT e.x, count(*) FROM (SELECT explode(array(st, st)) e FROM odd_t) GROUP BY 1",
    "inlined structs": "SELECT k, inline_outer(array(st)) FROM odd_t",
    "nested columns": "SELECT a, mp, st, st.x, mp['k'], a[0] FROM odd_t WHERE k = 1",
    "unpivot": "SELECT * FROM (SELECT id, v, CAST(k AS LONG) k FROM odd_u) UNPIVOT (val FOR name IN (v, k))",
    "pivot": """SELECT * FROM (SELECT k, s, v, m FROM odd_u) PIVOT (sum(v) AS a, max(m) AS b FOR k IN (1, 2, 30))""",
    "pivot by words and NULL": "SELECT * FROM (SELECT s, v FROM odd_u) PIVOT (count(v) FOR s IN ('1', NULL, '3'))",
    "rollup": "SELECT k, s, count(*), grouping_id() FROM odd_u GROUP BY ROLLUP (k, s)",
    "distinct aggregates": """SELECT count(DISTINCT k, s), sum(DISTINCT v) FILTER (WHERE k = 1), count(*) FILTER (WHERE v > 3)
        FROM odd_u""",
    "nothing to aggregate": "SELECT count(*), sum(k), max(s), collect_list(k) FROM odd_e",
    "nothing to group": "SELECT k, count(*) FROM odd_e GROUP BY k",
    "nothing to join": "SELECT * FROM odd_e FULL JOIN (SELECT k kk FROM odd_u WHERE id < 3) ON k = kk",
    "no columns": "SELECT count(*) FROM (SELECT 1 FROM odd_u LIMIT 7)",
    "constants": "SELECT 1, NULL n FROM odd_u",
    "no rows by limit": "SELECT * FROM odd_u LIMIT 0",
    "offset": "SELECT id, v FROM odd_u ORDER BY v NULLS LAST, id DESC LIMIT 5 OFFSET 7",
    "intersect all": "SELECT k FROM odd_u INTERSECT ALL SELECT CAST(v AS INT) FROM odd_u",
    "except all": "SELECT k FROM odd_u EXCEPT ALL SELECT CAST(v AS INT) FROM odd_u",
    "a correlated count": "SELECT k, (SELECT count(*) FROM odd_u b WHERE b.id = a.k + 190) c FROM odd_t a",
    "exists in select": "SELECT k, EXISTS (SELECT 1 FROM odd_u b WHERE b.k = a.k) e FROM odd_t a",
    "not in with NULLs": "SELECT k FROM odd_t WHERE k NOT IN (SELECT v FROM odd_u)",
    "a CTE twice": "WITH c AS (SELECT k, sum(v) sv FROM odd_u GROUP BY k) SELECT a.k, b.sv FROM c a JOIN c b ON a.k = b.k + 1",
    "hints": "SELECT /*+ merge(b) */ count(*) FROM odd_u a JOIN odd_t b ON a.k = b.k",
    "a long list": f"SELECT k, count(*) FROM odd_u WHERE id IN ({', '.join(map(str, range(50, 1050)))}) GROUP BY k",
    "dates": "SELECT d + INTERVAL 1 MONTH, last_day(d), datediff(d, DATE'2000-01-01'), trunc(d, 'MM') FROM odd_t",
    "differences of times": "SELECT ts - TIMESTAMP'2020-01-01' > INTERVAL 1 DAY, max(ts) - min(ts) FROM odd_t GROUP BY ts",
    "intervals": """SELECT k, i * 2 a, i * 1.5D b, i / 3 c, -i d, extract(DAY FROM i) e, extract(HOUR FROM i) f, extract(MINUTE FROM i) g,
        extract(SECOND FROM i) h, i > INTERVAL 1 DAY x, ts - i y FROM (SELECT k, ts, ts - TIMESTAMP'2020-01-01 00:00:00.5' i FROM odd_t)""",
    "intervals added up": "SELECT k, sum(i), avg(i), max(i) FROM (SELECT k, ts - TIMESTAMP'2020-01-01' i FROM odd_t) GROUP BY k",
    "an interval over nothing": "SELECT (ts - TIMESTAMP'2020-01-01') / (k - 1) FROM odd_t",
    "a range": "SELECT sum(id), count(*), max(id) FROM RANGE(100000) WHERE id % 3 = 1",
    "a range backwards": "SELECT id, id * 2 FROM RANGE(10, -10, -3)",
    "a range joined": "SELECT r.id, count(*) FROM RANGE(10) r JOIN odd_u ON r.id = odd_u.k GROUP BY 1",
    "rows": "SELECT * FROM VALUES (1, 'a'), (2, NULL), (3, 'null') v(a, b)",
    "rows joined": "SELECT b, sum(v) FROM VALUES (1, 'a'), (2, 'b') x(a, b) JOIN odd_u ON a = k GROUP BY b",
    "rows of all types": """SELECT * FROM VALUES (1Y, 1S, 1, 1L, 0.1F, double('NaN'), 1.50BD, 'ü', DATE'0001-01-01',
        TIMESTAMP'1500-01-01 00:00:00', TIMESTAMP_NTZ'2020-01-01 00:00:00', true, INTERVAL 1 DAY),
        (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""",
    "rows counted": "SELECT count(*) FROM VALUES (1, 'a'), (2, 'b') x(a, b) CROSS JOIN RANGE(3)",
    "rows of no type": "SELECT a, count(*) FROM VALUES (NULL), (NULL) v(a) GROUP BY a",
    "empty arrays of structs": """SELECT k, IF(k = 1, array(st), array()) a, coalesce(IF(k = 1, array(array(st)), NULL), array(array())) b,
        (SELECT collect_list(struct(id)) FROM odd_u b WHERE b.id = a.k) c, array(NULL, st)[0].x d FROM odd_t a""",
    "a struct that repeats a name": "SELECT k, count(*) FROM odd_u WHERE named_struct('a', k, 'a', v) > named_struct('a', 2, 'a', 3L) GROUP BY k",
    "fields of a subquery's struct": """SELECT k, (SELECT max(struct(k, s)) FROM odd_u).s a, (SELECT max(struct(k, s)) FROM odd_u).k b,
        (SELECT max(struct(k, s)) FROM odd_u) c FROM odd_t""",
    "a subquery's struct and a field of it": """SELECT (SELECT named_struct('a', id, 'b', s) FROM odd_u WHERE id = 5) x,
        (SELECT named_struct('a', id, 'b', s) FROM odd_u WHERE id = 5).b y, (SELECT named_struct('a', id, 'b', s) FROM odd_u WHERE id < 0) z FROM odd_t""",
    "many CASEs": f"SELECT {', '.join(f'sum(CASE WHEN k = {i} THEN v ELSE 0 END) c{i}' for i in range(20))} FROM odd_u",
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_whole_in_the_engine(spark, zoo, name):
    frame = spark.sql(WHOLE[name])
    if SPARK_BEFORE_4_3 and name == "correlation with a constant":
        assert [r.endswith("Corr stays with it") for _, r in kq.explain(frame).reasons] == [True]
        return
    check(frame, coverage=1.0)


LEGACY = {
    "an ANSI view": "SELECT * FROM odd_ansi",
    "casts of garbage": """SELECT CAST(s AS INT), CAST(s AS DATE), CAST(s AS DECIMAL(3, 1)), CAST(f AS INT),
        CAST(k * 100000 AS TINYINT), k / 0, k % 0, k + 2147483647 FROM odd_t""",
    "decimals": "SELECT CAST(m * 1000 AS DECIMAL(4, 2)), sum(m * 1e36BD) FROM odd_t GROUP BY m",
    "sums": "SELECT sum(id * 9223372036854775807) FROM odd_u",
}


@pytest.mark.parametrize("name", LEGACY)
def test_without_ansi(spark, zoo, name):
    with settings(spark, {"spark.sql.ansi.enabled": "false"}):
        check(spark.sql(LEGACY[name]), coverage=1.0)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_other_time_zones(spark, zoo, zone):
    query = """SELECT CAST(ts AS STRING), hour(ts), CAST(ts AS DATE) day, date_trunc('day', ts), ts + INTERVAL 1 DAY,
        ts + INTERVAL 24 HOURS, CAST('2021-03-28 02:30:00' AS TIMESTAMP), CAST(d AS TIMESTAMP) FROM odd_t
        WHERE d > '1900-01-01'"""
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        check(spark.sql(query), coverage=1.0)
        check(spark.sql("SELECT * FROM VALUES (TIMESTAMP'2021-10-31 02:30:00'), (NULL) v(t)"), coverage=1.0)


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
    "repartitioned": lambda s: s.table("odd_u").repartition(3, "k").groupBy("k").count(),
    "coalesced": lambda s: s.table("odd_u").groupBy("k").count().coalesce(1),
    "a window without its constant order": lambda s: s.sql(
        """SELECT a.k, x FROM odd_t a, LATERAL (SELECT v x FROM odd_u b WHERE b.k = a.k ORDER BY b.id LIMIT 1)"""),
    "cached": lambda s: s.table("odd_u").where("id > 3").cache().groupBy("k").agg(F.sum("v")),
}  # fmt: skip


DAYS = (
    "INTERVAL 2 DAYS PRECEDING AND CURRENT ROW",
    "INTERVAL '3' DAY PRECEDING AND INTERVAL '1' DAY PRECEDING",
    "CURRENT ROW AND INTERVAL 1 WEEK FOLLOWING",
    "INTERVAL '-1' DAY PRECEDING AND INTERVAL '2' DAY + INTERVAL '1' DAY FOLLOWING",
)


@pytest.mark.parametrize("order", ["d", "d DESC NULLS FIRST", "d NULLS LAST"])
def test_rolling_days_over_dates(spark, tmp_path, order):
    path = str(tmp_path / "days.parquet")
    days = spark.sql(
        "SELECT id, id % 3 AS g, IF(id % 11 = 0, NULL, DATE'2024-02-20' + CAST(id * 7 % 40 AS INT)) AS d FROM RANGE(120)"
    )
    days.coalesce(1).write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("odd_days")
    context = kq.ExecutionContext()
    context.register_parquet("odd_days", path)
    try:
        for frame in DAYS:
            sql = f"""SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM odd_days
                      WINDOW w AS (PARTITION BY g ORDER BY {order} RANGE BETWEEN {frame}) ORDER BY id"""
            check(spark.sql(sql), coverage=1.0)
            assert context.sql(sql).to_arrow().equals(spark.sql(sql).toArrow())
        for frame in ("INTERVAL '24' HOUR PRECEDING", "INTERVAL '1 00' DAY TO HOUR PRECEDING"):
            sql = f"SELECT sum(id) OVER (ORDER BY d RANGE BETWEEN {frame} AND CURRENT ROW) FROM odd_days"
            for asked in (lambda text=sql: spark.sql(text).collect(), lambda text=sql: context.sql(text)):
                with pytest.raises(Exception, match="RANGE_FRAME_INVALID_TYPE"):
                    asked()
        months = "SELECT sum(id) OVER (ORDER BY d RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) FROM odd_days"
        assert check(spark.sql(months)).coverage < 1
    finally:
        spark.catalog.dropTempView("odd_days")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT named_struct('a', k, 'a', s) x, count(*) n FROM odd_u GROUP BY k, s",
        "SELECT max(array(named_struct('b', named_struct('a', k, 'a', v)))) x, s FROM odd_u GROUP BY s",
        "SELECT x, count(*) FROM (SELECT DISTINCT named_struct('a', k, 'a', s) x, rand() > 2 r FROM odd_u) GROUP BY x",
    ],
)
def test_rows_with_structs_that_repeat_a_name_do_not_change_sides(spark, zoo, query):
    frame = spark.sql(query)
    assert any("two fields named a," in reason for _, reason in kq.explain(frame).reasons)
    with warnings.catch_warnings():
        warnings.simplefilter("error", kq.FallbackWarning)
        fast = kquery_plan(frame, when="always")
        assert sorted(map(repr, fast.collect())) == sorted(map(repr, frame.collect()))
        assert fast.count() == frame.count()


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


@pytest.mark.parametrize("value", ["array()", "map()", "named_struct('a', array(array()))"])
def test_types_without_values_stay_with_spark(spark, zoo, value):
    frame = spark.sql(f"SELECT k, {value} x FROM odd_t")
    assert any("ARRAY() and MAP()" in reason for _, reason in kq.explain(frame).reasons)
    with warnings.catch_warnings():
        warnings.simplefilter("error", kq.FallbackWarning)
        fast = kquery_plan(frame, when="always")
    assert fast.schema == frame.schema
    assert sorted(map(repr, fast.collect())) == sorted(map(repr, frame.collect()))


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
    assert "parquet files are read by Spark" in reason


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
    assert "Streaming" in str(kq.explain(frame).reasons)


def test_a_column_nobody_reads_may_be_of_any_type(spark, tmp_path):
    path = str(tmp_path / "types")
    spark.sql("SELECT id, id % 3 g, parse_json('1') v, INTERVAL 2 MONTH i FROM RANGE(10)").write.parquet(path)
    check(spark.read.parquet(path).groupBy("g").agg(F.sum("id")), coverage=1.0)
    with_variant = check(spark.read.parquet(path).selectExpr("g", "v::int x").groupBy("x").count())
    assert with_variant.coverage < 1


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
    cached = spark.table("odd_u").cache()
    try:
        cached.count()
        text = str(kq.explain(cached.groupBy("k").count()))
        handed = int(text.split(" rows handed over")[0].split()[-1].replace(",", ""))
        assert 0 < handed < 1000
    finally:
        cached.unpersist()
