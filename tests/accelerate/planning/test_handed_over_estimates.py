"""How many rows are expected where Spark hands some over: of lists, pandas frames, JDBC tables, checkpoints and caches."""

import pandas as pd
import pytest
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark.accelerate.planning.decision import decide
from kquery_spark.accelerate.planning.pipeline import plan_frame
from tests.accelerate.checks import check

FACTS = 400_000
NAMED = 500


@pytest.fixture(scope="module")
def facts(spark, tmp_path_factory):
    """Many rows with a key of 500 values."""
    path = str(tmp_path_factory.mktemp("estimates") / "facts")
    spark.range(FACTS).selectExpr("id % 500 AS k", "id AS v", "CAST(id % 7 AS DOUBLE) AS x").write.parquet(
        path
    )
    return path


def names(spark):
    return [(i, f"name {i % 10}") for i in range(NAMED)]


def from_list(spark):
    return spark.createDataFrame(names(spark), "k BIGINT, name STRING")


def from_pandas(spark):
    return spark.createDataFrame(pd.DataFrame(names(spark), columns=["k", "name"]), "k BIGINT, name STRING")


def from_rdd(spark):
    rows = spark.sparkContext.parallelize(names(spark), 4).map(lambda row: row)
    return spark.createDataFrame(rows, "k BIGINT, name STRING")


def from_jdbc(spark):
    url = "jdbc:derby:memory:estimates;create=true"
    frame = from_list(spark).coalesce(1)
    frame.write.format("jdbc").options(url=url, dbtable="names").mode("overwrite").save()
    found = spark.read.format("jdbc").options(url=url, dbtable="names").load()
    return found.selectExpr("k", "CAST(name AS STRING) AS name")


def checkpointed(spark):
    return from_list(spark).localCheckpoint()


def cached(spark):
    frame = from_list(spark).cache()
    frame.count()
    return frame


# how many rows may be expected of the side: a leaf without statistics is taken to have a million
SIDES = {
    from_list: (100, 2048),
    from_pandas: (NAMED, NAMED),
    from_rdd: (100, 4096),
    from_jdbc: (1, 1_000_000),
    checkpointed: (100, 20_000),
    cached: (NAMED, NAMED),
}


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side.__name__)
def test_a_join_with_rows_of_sparks_is_estimated_sanely(spark, facts, side):
    least, most = SIDES[side]
    handed = side(spark)
    try:
        joined = spark.read.parquet(facts).join(handed, "k")
        planned = plan_frame(joined.groupBy("name").agg(F.sum("v"), F.avg("x")))
        (part,) = planned.parts
        if part.imported.inputs:  # few enough rows of a pandas frame are in the query itself
            assert least <= part.imported.inputs[0].rows <= most
        assert part.compiled.estimate.rows <= 10_001  # ten; of a million rows that nothing is known of 10,000
        (pairs,) = plan_frame(joined.groupBy().agg(F.sum("v"))).parts
        assert pairs.compiled.estimate.rows == 1
        (rows,) = plan_frame(joined.orderBy("v").limit(10**9)).parts or [None]
        if rows is not None:
            assert rows.compiled.estimate.rows <= max(FACTS, most)
        # two million values may come from a database that says nothing of them, which take longer than the rest
        assert decide(planned, part).accelerate == (side is not from_jdbc)
        assert "495," not in str(kq.explain(joined))
    finally:
        handed.unpersist()


def test_the_answer_of_such_a_join(spark, facts):
    check(spark.read.parquet(facts).join(from_list(spark), "k").groupBy("name").agg(F.sum("v"), F.avg("x")))


def test_limits_and_ranges_bound_what_is_handed_over(spark, facts):
    for frame in (
        spark.range(300).selectExpr("id AS k", "uuid() AS name"),
        from_jdbc(spark).orderBy("name").limit(50).selectExpr("k", "concat(name, uuid()) AS name"),
    ):
        planned = plan_frame(spark.read.parquet(facts).join(frame, "k").groupBy("name").count())
        inputs = [found for part in planned.parts for found in part.imported.inputs]
        assert inputs and all(found.rows <= 300 for found in inputs)


def test_handing_over_is_the_cost_where_little_else_is_done(spark, tmp_path):
    """A million rows may come from the database, to meet a thousand: so handing them over does not pay."""
    spark.range(1000).selectExpr("id % 500 AS k").write.parquet(str(tmp_path / "small"))
    planned = plan_frame(from_jdbc(spark).join(spark.read.parquet(str(tmp_path / "small")), "k"))
    assert planned.parts and not any(decide(planned, part).accelerate for part in planned.parts)
