"""What comes before, after and beside a part the engine can run: sources, UDFs, caches, unsupported nodes."""

import datetime
from decimal import Decimal

import pandas as pd
import pytest
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf, udf

import kquery_spark as kq
from kquery_spark import kquery_plan

CORE = """SELECT n_regionkey, n_name, sum(c_acctbal) AS total, count(*) AS n
          FROM customer JOIN nation ON c_nationkey = n_nationkey GROUP BY n_regionkey, n_name"""


@pytest.fixture
def core(spark, tables):
    return spark.sql(CORE)


def plus_one(column):
    @udf("int")
    def f(value):
        return None if value is None else value + 1

    return f(column)


def half(column):
    @pandas_udf("double")
    def f(values: pd.Series) -> pd.Series:
        return values.astype("float64") / 2

    return f(column)


def arrow_double(column):
    @udf("long", useArrow=True)
    def f(value):
        return None if value is None else value * 2

    return f(column)


def marked(frame):
    """The plan of the accelerated frame really has the engine in it."""
    fast = frame.transform(kquery_plan, when="always")
    text = fast._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" in text, text
    return text


def test_python_udf_above_the_engine(core, same):
    frame = core.select("n_name", plus_one("n_regionkey").alias("u"))
    same(frame)
    assert "EvalPython" not in marked(frame)


def test_pandas_udf_above_the_engine(core, same):
    frame = core.select("n_name", half("total").alias("h")).where("h > 0")
    same(frame)
    assert "EvalPython" not in marked(frame)


def test_arrow_udf_above_the_engine(core, same):
    frame = core.select("n_name", arrow_double("n").alias("d"))
    same(frame)
    marked(frame)


def test_udf_below_the_engine(spark, tables, same):
    frame = spark.table("nation").withColumn("u", plus_one("n_regionkey")).groupBy("u").agg(F.count("*"))
    same(frame)
    marked(frame)


def test_udf_in_a_filter_and_a_join(spark, tables, same):
    nation = spark.table("nation").where(plus_one("n_regionkey") > 2)
    frame = nation.join(spark.table("customer"), F.col("c_nationkey") == F.col("n_nationkey")).groupBy(
        "n_name"
    )
    same(frame.agg(F.sum("c_acctbal"), F.count("*")))


def test_pandas_functions_on_groups_and_partitions(core, same):
    def shout(batches):
        for batch in batches:
            yield batch.assign(n_name=batch["n_name"].str.lower())

    def widest(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.nlargest(1, "n")[["n_regionkey", "n"]]

    same(core.mapInPandas(shout, core.schema))
    same(core.groupBy("n_regionkey").applyInPandas(widest, "n_regionkey int, n long"))
    same(core.mapInPandas(shout, core.schema).groupBy("n_regionkey").agg(F.sum("n")))


def test_grouped_pandas_aggregate(spark, tables, same):
    @pandas_udf("double")
    def spread(values: pd.Series) -> float:
        return float(values.max() - values.min())

    same(spark.table("customer").groupBy("c_nationkey").agg(spread(F.col("c_custkey"))))


def test_cached_frames(spark, tables, same):
    cached = spark.sql("SELECT * FROM customer WHERE c_acctbal > 0").cache()
    try:
        same(cached.groupBy("c_nationkey").agg(F.sum("c_acctbal")))
        same(
            cached.join(spark.table("nation"), F.col("c_nationkey") == F.col("n_nationkey"))
            .groupBy("n_name")
            .count()
        )
    finally:
        cached.unpersist()


def test_created_frames_and_views(spark, tables, same):
    rows = [
        (1, "a", datetime.date(2020, 1, 1), 1.5),
        (2, None, None, None),
        (1, "b", datetime.date(1900, 1, 1), -0.0),
    ]
    frame = spark.createDataFrame(rows, "k int, s string, d date, f double")
    same(frame.groupBy("k").agg(F.max("s"), F.min("d"), F.sum("f")))
    same(
        frame.join(spark.table("nation"), F.col("k") == F.col("n_nationkey"))
        .groupBy("n_name")
        .agg(F.count("s"))
    )
    frame.createOrReplaceTempView("made")
    try:
        same("SELECT d, count(DISTINCT k) FROM made GROUP BY d")
    finally:
        spark.catalog.dropTempView("made")
    same(spark.createDataFrame(pd.DataFrame({"x": [1, 2, 2]})).groupBy("x").count())


def test_frames_of_rdds(spark, same):
    frame = spark.sparkContext.parallelize([(1, "a"), (2, "b"), (1, None)]).toDF(["k", "s"])
    same(frame.groupBy("k").agg(F.count("s")))


def test_catalog_tables(spark, tables, same):
    spark.sql("DROP TABLE IF EXISTS kept")
    spark.table("customer").write.saveAsTable("kept")
    spark.sql("CREATE OR REPLACE TEMP VIEW rich AS SELECT * FROM kept WHERE c_acctbal > 5000")
    try:
        same("SELECT c_mktsegment, count(*), sum(c_acctbal) FROM kept GROUP BY 1")
        same("SELECT c_mktsegment, max(c_name) FROM rich GROUP BY 1")
    finally:
        spark.catalog.dropTempView("rich")
        spark.sql("DROP TABLE kept")


def test_partitioned_tables(spark, tables, same, tmp_path):
    path = str(tmp_path / "parts")
    source = spark.sql(
        """SELECT o_orderkey, o_totalprice, CASE WHEN o_orderkey % 7 = 0 THEN NULL ELSE o_orderstatus END AS status,
                  year(o_orderdate) AS year, o_orderdate FROM orders"""
    )
    source.write.partitionBy("status", "year").parquet(path)
    frame = spark.read.parquet(path)
    same(frame.groupBy("status").agg(F.sum("o_totalprice"), F.count("*")))
    same(frame.where("year = 1995 AND status = 'O'").groupBy("year").agg(F.max("o_orderkey")))
    same(frame.where("status IS NULL").groupBy().count())
    same(frame.groupBy("year").agg(F.count_distinct("status")))


def test_metadata_columns(spark, tables, same):
    frame = spark.read.parquet(str(tables / "nation.parquet"))
    picked = frame.select("n_regionkey", "_metadata.file_name", "_metadata.row_index")
    report = kq.verify(picked.groupBy("file_name").agg(F.sum("row_index"), F.count("*")))
    assert report.ok, str(report)


@pytest.mark.parametrize("format_", ["csv", "json", "orc", "text", "parquet"])
def test_formats(spark, tables, same, tmp_path, format_):
    path = str(tmp_path / "data")
    names = spark.sql("SELECT n_name AS value FROM nation")
    (names if format_ == "text" else spark.table("nation").drop("n_comment")).write.format(format_).save(path)
    reader = spark.read.format(format_)
    frame = reader.load(path) if format_ != "csv" else reader.schema("a long, b string, c long").load(path)
    last = frame.columns[-1]
    same(frame.groupBy(last).count())
    same(frame.groupBy().agg(*[F.max(c) for c in frame.columns]))


def test_spark_operations_before_and_after(spark, tables, same):
    before = spark.table("customer").repartition(3).sample(0.9, seed=7)
    same(before.groupBy("c_nationkey").agg(F.sum("c_acctbal")).orderBy("c_nationkey"))
    same(spark.sql(CORE).repartition(2).selectExpr("*", "rand() * 0 AS m"))
    same(spark.sql(CORE).coalesce(1).sortWithinPartitions("n_name"))
    same(
        spark.sql(CORE)
        .hint("broadcast")
        .join(spark.table("region"), F.col("n_regionkey") == F.col("r_regionkey"))
    )
    same(spark.sql(CORE).na.fill(0).dropDuplicates(["n_regionkey"]).select("n_regionkey"))


def above(frame):
    """A function without Arrow that gives maps of decimal keys falls back to Spark."""
    in_map = udf(lambda value: {Decimal("0.5"): value + 1}, "map<decimal(3,1),int>", useArrow=False)
    return frame.withColumn("up", F.map_values(in_map("n_regionkey"))[0])


def beside(frame):
    other = frame.sparkSession.createDataFrame([(0, "x"), (1, "y")], "k int, word string").sample(1.0, seed=1)
    return frame.join(other, F.col("n_regionkey") == F.col("k"), "left").drop("k")


def below(spark):
    spark.table("customer").sample(1.0, seed=3).createOrReplaceTempView("customer_sampled")
    return spark.sql(CORE.replace("customer", "customer_sampled"))


WRAPS = {
    "above": lambda spark: above(spark.sql(CORE)),
    "below": below,
    "beside": lambda spark: beside(spark.sql(CORE)),
    "above and below": lambda spark: above(below(spark)),
    "above and beside": lambda spark: above(beside(spark.sql(CORE))),
    "below and beside": lambda spark: beside(below(spark)),
    "everywhere": lambda spark: above(beside(below(spark))),
    "between": lambda spark: above(spark.sql(CORE)).groupBy("up").agg(F.sum("total"), F.sum("n")),
    "twice between": lambda spark: above(
        above(spark.sql(CORE)).groupBy("up").agg(F.sum("n").cast("int").alias("n_regionkey"))
    ).groupBy("up").count(),
    "two parts under one": lambda spark: above(spark.sql(CORE)).union(above(spark.sql(CORE))),
    "two parts under a join": lambda spark: above(spark.sql(CORE)).alias("a").join(
        above(spark.sql(CORE)).alias("b"), ["n_name"], "full"
    ),
    "in a subquery": lambda spark: spark.sql(
        f"SELECT * FROM ({CORE}) WHERE total > (SELECT avg(total) FROM ({CORE}) TABLESAMPLE (100 PERCENT))"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPS)
def test_unsupported_parts_around_a_supported_query(spark, tables, same, name):
    frame = WRAPS[name](spark)
    report = same(frame)
    assert 0 < report.coverage < 1
    explained = kq.explain(frame)
    assert explained.reasons
    marked(frame)
    assert frame.transform(kquery_plan, when="auto").count() == frame.count()
