"""A failure of the engine at run time: read-only actions run again on Spark, writes and query errors never."""

import os
import warnings

import pytest

import kquery_spark as kq
from kquery_spark import FallbackWarning, kquery_plan

QUERY = "SELECT k, sum(v) AS s FROM broken GROUP BY k"


@pytest.fixture
def broken(spark, tmp_path, monkeypatch):
    """A frame of kquery_plan whose engine fails and whose query Spark can run: the file is touched after planning."""
    path = str(tmp_path / "data")
    spark.range(100).selectExpr("id % 7 AS k", "id AS v").coalesce(1).write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("broken")

    def make(**options):
        frame = spark.sql(QUERY)
        fast = frame.transform(kquery_plan, when="always", **options)
        for file in (tmp_path / "data").glob("*.parquet"):
            later = file.stat().st_mtime + 10

            os.utime(file, (later, later))
        return frame, fast

    yield make
    spark.catalog.dropTempView("broken")


@pytest.mark.parametrize(
    ("action", "result"),
    [
        (lambda f: len(f.collect()), 7),
        (lambda f: f.toArrow().num_rows, 7),
        (lambda f: len(f.toPandas()), 7),
        (lambda f: f.count(), 7),
        (lambda f: len(f.take(3)), 3),
        (lambda f: len(f.head(2)), 2),
        (lambda f: len(f.tail(2)), 2),
        (lambda f: len(f.first()), 2),
        (lambda f: f.isEmpty(), False),
        (lambda f: f.show(), None),
    ],
)  # fmt: skip
def test_a_failed_action_runs_again_on_spark_with_a_warning(broken, action, result):
    _, fast = broken()
    with pytest.warns(
        FallbackWarning, match=r"SourceError: .*has changed since the query was planned"
    ) as caught:
        assert action(fast) == result
    ours = [w for w in caught if w.category is FallbackWarning]
    assert [w.filename for w in ours] == [__file__]


def test_fallback_error_does_not_run_again(broken):
    _, fast = broken(fallback="error")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception, match="has changed since the query was planned"):
            fast.collect()


def test_writes_are_never_run_again(broken, tmp_path):
    _, fast = broken()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception, match="has changed since the query was planned"):
            fast.write.parquet(str(tmp_path / "out"))
        with pytest.raises(Exception, match="has changed"):
            fast.foreach(print)
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_an_error_of_the_query_is_raised_as_it_is(spark, tables):
    fast = spark.sql("SELECT sum(1 / (n_nationkey - 3)) FROM nation").transform(kquery_plan, when="always")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            fast.collect()


def test_a_failing_user_function_is_not_the_engines(spark, tables):
    from pyspark.sql.functions import udf

    calls = spark.sparkContext.accumulator(0)

    @udf("int")
    def fail(value):
        calls.add(1)
        raise ValueError("user code")

    frame = spark.sql("SELECT n_regionkey, count(*) AS n FROM nation GROUP BY n_regionkey").coalesce(1)
    fast = frame.select(fail("n")).transform(kquery_plan, when="always")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception, match="user code"):
            fast.collect()


def test_a_planning_bug_leaves_the_query_to_spark(spark, tables, monkeypatch):
    def bug(frame, query):
        raise KeyError("planner")

    monkeypatch.setattr("kquery_spark.session.transform.plan_frame", bug)
    frame = spark.sql("SELECT max(n_name) FROM nation")
    with pytest.warns(
        FallbackWarning, match="could not plan the query, so Spark runs it: KeyError: 'planner'"
    ):
        assert frame.transform(kquery_plan) is frame
    with pytest.raises(KeyError):
        frame.transform(kquery_plan, fallback="error")


def test_spark_still_refuses_to_overwrite_a_table_that_is_read(spark, tables):
    spark.sql("DROP TABLE IF EXISTS overwritten")
    spark.table("nation").write.saveAsTable("overwritten")
    try:
        frame = spark.sql("SELECT n_regionkey, count(*) AS n FROM overwritten GROUP BY 1")
        fast = frame.transform(kquery_plan, when="always", fallback="error")
        for each in (frame, fast):
            with pytest.raises(Exception, match="OVERWRITE"):
                each.write.mode("overwrite").saveAsTable("overwritten")
        assert spark.table("overwritten").count() == 25
    finally:
        spark.sql("DROP TABLE overwritten")


def test_writing_keeps_the_plan_free_of_spark_scans(spark, tables, tmp_path):
    fast = spark.sql("SELECT n_regionkey, count(*) AS n FROM nation GROUP BY 1").transform(
        kquery_plan, when="always"
    )
    text = fast._with_sources()._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" in text
    assert "FileScan" not in text
    assert "Union" not in text
    assert fast._with_sources().schema == fast.schema
    fast.write.parquet(str(tmp_path / "out"))
    assert spark.read.parquet(str(tmp_path / "out")).count() == 5
    assert kq.verify(fast).ok
