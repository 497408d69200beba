"""``df.transform(kquery_plan)``: schema, laziness, further operations, options and their errors."""

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import ConfigError, KQueryError, Unsupported

GROUPED = """SELECT l_returnflag, l_linestatus, sum(l_quantity) AS qty, avg(l_discount) AS discount, count(*) AS n,
             max(l_shipdate) AS last FROM lineitem GROUP BY l_returnflag, l_linestatus"""


def always(frame):
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    assert "MapInArrow" in plan_text(fast)
    return fast


def plan_text(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def rows(frame):
    return sorted(map(repr, frame.collect()))


@pytest.mark.parametrize(
    "sql",
    [
        GROUPED,
        "SELECT count(*) FROM lineitem",
        "SELECT 1 AS one, l_orderkey + 1, CAST(l_quantity AS double) q FROM lineitem LIMIT 3",
        "SELECT sum(l_quantity), sum(l_quantity) FROM lineitem",
        "SELECT n_name, n_name, r_name AS n_name FROM nation JOIN region ON n_regionkey = r_regionkey",
        "SELECT coalesce(n_name, 'x') AS `a b.c`, n_nationkey AS `Σ` FROM nation ORDER BY n_nationkey LIMIT 5",
        "SELECT n_nationkey IS NULL AS `from`, count(n_name) FROM nation GROUP BY ALL",
    ],
)
def test_schema_is_exactly_sparks(spark, tables, sql):
    frame = spark.sql(sql)
    fast = always(frame)
    assert fast.schema == frame.schema
    assert fast.schema.json() == frame.schema.json()
    assert rows(fast) == rows(frame)


def test_planning_runs_no_job(spark, tables):
    context = spark.sparkContext
    frame = spark.sql(GROUPED)
    wide = spark.sql(
        "SELECT n_name, count(*) FROM nation JOIN customer ON n_nationkey = c_nationkey GROUP BY 1"
    )
    context.setJobGroup("planning", "no job may run")
    try:
        for query in (frame, wide):
            query.transform(kquery_plan)
            fast = query.transform(kquery_plan, when="always")
            str(kq.explain(query))
        assert list(context.statusTracker().getJobIdsForGroup("planning")) == []
        fast.collect()
        assert list(context.statusTracker().getJobIdsForGroup("planning")) != []
    finally:
        context._jsc.clearJobGroup()


def test_the_result_is_a_dataframe_for_further_work(spark, tables, tmp_path):
    frame = spark.sql(GROUPED)
    fast = always(frame)
    assert rows(fast.filter("n > 100").select("l_returnflag", (F.col("qty") * 2).alias("twice"))) == rows(
        frame.filter("n > 100").select("l_returnflag", (F.col("qty") * 2).alias("twice"))
    )
    assert fast.count() == frame.count()
    assert fast.orderBy("qty").first() == frame.orderBy("qty").first()
    assert fast.groupBy("l_returnflag").count().count() == 3
    assert rows(fast.join(fast.select("l_returnflag").distinct(), "l_returnflag")) == rows(frame)
    assert rows(fast.union(frame).distinct()) == rows(frame)
    assert fast.isEmpty() is False
    fast.createOrReplaceTempView("fast_view")
    try:
        assert spark.sql("SELECT count(*) AS n FROM fast_view").first().n == 4
    finally:
        spark.catalog.dropTempView("fast_view")
    fast.write.parquet(str(tmp_path / "out"))
    assert rows(spark.read.parquet(str(tmp_path / "out"))) == rows(frame)


def test_results_leave_as_pandas_and_arrow(spark, tables):
    frame = spark.sql(GROUPED).orderBy("l_returnflag", "l_linestatus")
    fast = always(frame)
    table = fast.toArrow()
    assert isinstance(table, pa.Table)
    assert table.schema == frame.toArrow().schema
    assert table.drop(["discount"]).equals(frame.drop("discount").toArrow())
    assert list(fast.toPandas().columns) == list(frame.toPandas().columns)
    assert fast.toPandas()["n"].tolist() == frame.toPandas()["n"].tolist()
    assert [r.n for r in fast.toLocalIterator()] == [r.n for r in frame.toLocalIterator()]


def test_accelerating_twice_is_harmless(spark, tables):
    frame = spark.sql(GROUPED)
    fast = always(frame)
    assert rows(fast.transform(kquery_plan, when="always")) == rows(frame)


def test_caching_the_result(spark, tables):
    fast = always(spark.sql(GROUPED)).cache()
    try:
        assert fast.count() == 4
        assert rows(fast) == rows(spark.sql(GROUPED))
    finally:
        fast.unpersist()


def test_auto_leaves_small_queries_to_spark_and_never_leaves_all(spark, tables):
    frame = spark.sql("SELECT n_regionkey, count(*) FROM nation GROUP BY n_regionkey")
    assert frame.transform(kquery_plan, when="never") is frame
    explained = kq.explain(frame)
    fast = frame.transform(kquery_plan)
    assert ("MapInArrow" in plan_text(fast)) == explained.accelerated


def test_the_engine_can_be_switched_off(spark, tables):
    frame = spark.sql(GROUPED)
    spark.conf.set("spark.kquery.enabled", "false")
    try:
        assert frame.transform(kquery_plan, when="always") is frame
        assert frame.transform(kquery_plan, fallback="error") is frame
        assert not kq.explain(frame).accelerated
    finally:
        spark.conf.unset("spark.kquery.enabled")
    assert frame.transform(kquery_plan, when="always") is not frame


def test_fallback_error_names_the_node_and_the_reason(spark, tables):
    frame = spark.sql("SELECT count(*) FROM nation TABLESAMPLE (50 PERCENT)")
    with pytest.raises(Unsupported, match=r"Sample.*random samples"):
        frame.transform(kquery_plan, fallback="error")
    with pytest.raises(Unsupported):
        spark.range(10).sample(0.5).transform(kquery_plan, fallback="error").transform(
            kquery_plan, fallback="error"
        )


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"fallback": "no"}, ConfigError, "fallback must be 'spark' or 'error', not 'no'"),
        ({"when": "maybe"}, ConfigError, "when must be 'auto', 'always' or 'never', not 'maybe'"),
        ({"when": None}, ConfigError, "when must be"),
    ],
)
def test_bad_options_say_what_is_allowed(spark, options, error, text):
    with pytest.raises(error, match=text):
        spark.range(1).transform(kquery_plan, **options)


@pytest.mark.parametrize("thing", [None, 1, "SELECT 1", pa.table({"a": [1]})])
def test_not_a_dataframe(thing):
    with pytest.raises(KQueryError, match="takes a Spark DataFrame, not"):
        kquery_plan(thing)


def test_the_message_names_the_package_of_another_dataframe():
    with pytest.raises(
        KQueryError, match=r"not pandas\.DataFrame; spark\.createDataFrame\(\.\.\.\) makes one"
    ):
        kquery_plan(pd.DataFrame({"a": [1]}))
    with pytest.raises(KQueryError, match=r"not pyarrow\.Table"):
        kquery_plan(pa.table({"a": [1]}))


def test_spark_connect_is_declined_in_words():
    # a class named as Spark Connect's, because its dependencies (grpc) need not be installed
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    for call in (kquery_plan, kq.explain, kq.verify):
        with pytest.raises(KQueryError, match="Spark Connect"):
            call(frame)
    session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    for use in (kq.enable, kq.disable, kq.ExecutionContext):
        with pytest.raises(KQueryError, match="Spark Connect"):
            use(session)
        with pytest.raises(KQueryError, match="takes a Spark session here, not str"):
            use("local[2]")


def test_streams_stay_with_spark(spark):
    stream = spark.readStream.format("rate").load().groupBy().count()
    assert stream.transform(kquery_plan) is stream
    assert stream.transform(kquery_plan, when="always") is stream
    assert "treaming" in kq.explain(stream).reasons[0][1]
    with pytest.raises(Unsupported, match="treaming"):
        stream.transform(kquery_plan, fallback="error")


COLUMNS = {
    "select": lambda d, x: x.select(d.n_regionkey),
    "drop": lambda d, x: x.drop(d.n_regionkey),
    "filter": lambda d, x: x.filter(d.n_regionkey > 2),
    "sort": lambda d, x: x.orderBy(d["count"].desc(), d.n_regionkey),
    "group": lambda d, x: x.groupBy(d["count"]).agg(F.sum(d.n_regionkey)),
    "join with the original": lambda d, x: (
        x.alias("x").join(d.alias("d"), "n_regionkey").select("x.count", "d.count")
    ),
    "join with another": lambda d, x: x.join(
        d.sparkSession.table("region"), d.n_regionkey == F.col("r_regionkey")
    ),
    "join with itself": lambda d, x: x.alias("a").join(
        x.alias("b"), F.expr("a.n_regionkey = b.n_regionkey + 1")
    ),
    "union with the original": lambda d, x: x.union(d).select(d.n_regionkey),
}


@pytest.mark.parametrize("how", COLUMNS)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n_regionkey, count(*) AS count FROM nation GROUP BY n_regionkey",
        "SELECT n_regionkey, count(*) AS count FROM nation TABLESAMPLE (100 PERCENT) GROUP BY n_regionkey",
        "SELECT n_regionkey, count, n_regionkey AS n FROM (SELECT n_regionkey, count(*) AS count FROM nation "
        "GROUP BY n_regionkey) WHERE size(sentences(CAST(count AS STRING))) > 1",
    ],
    ids=["whole", "above Spark", "below Spark"],
)
def test_columns_of_the_original_are_columns_of_the_result(spark, tables, how, sql):
    frame = spark.sql(sql)
    fast = frame.transform(kquery_plan, when="always")
    assert type(fast) is not type(frame)
    make = COLUMNS[how]
    expected, actual = make(frame, frame), make(frame, fast)
    assert actual.schema == expected.schema
    assert sorted(map(str, actual.collect())) == sorted(map(str, expected.collect()))


def test_names_that_come_twice_keep_their_columns(spark, tables):
    frame = spark.sql("SELECT n_regionkey AS a, count(*) AS a FROM nation GROUP BY n_regionkey")
    fast = always(frame)
    assert fast.columns == ["a", "a"]
    assert sorted(map(str, fast.collect())) == sorted(map(str, frame.collect()))
    assert sorted(map(str, fast.toDF("x", "y").collect())) == sorted(map(str, frame.toDF("x", "y").collect()))


def test_input_files_are_those_of_the_original(spark, tables):
    frame = spark.sql("SELECT n_regionkey, count(*) FROM nation GROUP BY n_regionkey")
    assert always(frame).inputFiles() == frame.inputFiles() != []


def test_columns_have_their_names_whatever_the_engine_keeps(spark, tables):
    names = ["original", "planned", "parts", "placement", "execution", "_driver", "_result", "_rows", "_size"]
    frame = spark.table("nation").selectExpr(*(f"n_nationkey AS {name}" for name in names))
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    for name in names:
        assert fast.filter(getattr(fast, name) == 3).count() == 1
    added = set(dir(fast)) - set(dir(frame))
    assert {name.removeprefix("_abc_impl") for name in added} <= {"", "_kquery", "_some"}


def test_no_name_of_the_engines_frame_hides_a_column(spark, tables):
    frame = spark.sql("SELECT n_regionkey, count(*) AS built FROM nation GROUP BY n_regionkey")
    fast = frame.transform(kquery_plan, when="always")
    public = {name for name in set(dir(fast)) - set(dir(frame)) if not name.startswith("_")}
    assert public == set()
    assert sorted(fast.select(fast.built).collect()) == sorted(frame.select("built").collect())
