"""``kq.verify`` finds planted wrong answers, compares order and errors, and reports in words."""

import importlib
import weakref
from dataclasses import replace

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import kquery_spark as kq
from benchmarks import tpch
from kquery_spark.errors import VerifyError

module = importlib.import_module("kquery_spark.verify.verify")
QUERY = "SELECT n_regionkey AS k, count(*) AS n, sum(n_nationkey) AS s FROM nation GROUP BY n_regionkey"


@pytest.fixture(scope="module", autouse=True)
def _tables(spark, tpch_dir):
    tpch.register(spark, tpch_dir)


@pytest.fixture
def planted(monkeypatch):
    """``planted(change)``: the engine's result is changed before it is compared."""
    real = module.assemble

    def plant(change):
        monkeypatch.setattr(module, "assemble", lambda planned, parts: change(real(planned, parts)))

    return plant


def test_the_current_time_is_the_same_in_both_runs(spark, tmp_path):
    spark.range(30).selectExpr("id", "id % 4 AS k").write.saveAsTable(
        "verified_now", path=str(tmp_path / "now")
    )
    try:
        report = kq.verify(spark.sql("SELECT k, count(*), current_timestamp() FROM verified_now GROUP BY k"))
    finally:
        spark.sql("DROP TABLE verified_now")
    assert report.ok, str(report)
    assert report.coverage == 1.0


def test_equal_answers(spark):
    report = kq.verify(spark.sql(QUERY))
    assert report
    assert report.check() is report
    assert str(report).startswith("same as Spark SQL: yes (5 rows, 3 columns; coverage 100%")


def test_a_changed_table(spark, tmp_path):
    spark.range(10).selectExpr("id % 3 AS k").write.saveAsTable("verified_t", path=str(tmp_path / "t"))
    try:
        ran, unplanned = (spark.table("verified_t").groupBy("k").count() for _ in range(2))
        ran.collect()
        assert kq.verify(unplanned)
        spark.sql("INSERT INTO verified_t SELECT 7")
        assert kq.verify(ran).rows == 4
        assert kq.verify(unplanned).rows == 4
        assert unplanned.count() == len(unplanned.collect()) == 4, "the check must not pin the files"
    finally:
        spark.sql("DROP TABLE verified_t")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda f: f.withColumn("s", F.when(F.col("k") == 3, F.lit(0).cast("bigint")).otherwise(F.col("s"))), "column s"),
        (lambda f: f.where("k <> 3"), "Spark returns 5 rows, the engine 4"),
        (lambda f: f.union(f.where("k = 3")), "Spark returns 5 rows, the engine 6"),
        (lambda f: f.withColumn("n", F.col("n").cast("int")), "column n is bigint not nullable in Spark, int"),
        (lambda f: f.withColumn("n", F.expr("if(k >= 0, n, NULL)")), "nullable in the engine"),
        (lambda f: f.withColumnRenamed("s", "t"), "the engine's ['k', 'n', 't']"),
        (lambda f: f.select("k", "s", "n"), "the engine's ['k', 's', 'n']"),
    ],
)  # fmt: skip
def test_a_planted_wrong_answer_is_found(spark, planted, change, text):
    planted(change)
    report = kq.verify(spark.sql(QUERY))
    assert not report.ok
    assert not report
    assert str(report).startswith("same as Spark SQL: NO")
    assert text in str(report)
    with pytest.raises(VerifyError, match="same as Spark SQL: NO"):
        report.check()


def test_a_type_that_differs_in_nullability_inside_is_shown_with_it(spark, planted):
    planted(lambda f: f.withColumn("a", F.expr("if(k > 9, array(named_struct('x', int(k))), a)")))
    report = kq.verify(
        spark.sql(
            "SELECT k, array(named_struct('x', 1)) AS a FROM (SELECT DISTINCT n_regionkey AS k FROM nation)"
        )
    )
    assert (
        "column a is array<struct<x:int not null> not null> not nullable in Spark, "
        "array<struct<x:int> not null> not nullable in the engine"
    ) in str(report)


def test_a_wrong_order_is_found(spark, planted):
    frame = spark.sql(QUERY).orderBy(F.desc("s"), "k")
    report = kq.verify(frame)
    assert report.ok
    assert report.ordered_by == ("s", "k")
    assert "in the order of s, k" in str(report)
    planted(lambda f: f.orderBy("s"))
    assert "column s: " in str(kq.verify(frame))
    assert "in the order of the query" in str(kq.verify(frame))


def test_order_among_ties_is_free(spark, planted):
    frame = spark.sql("SELECT n_regionkey AS k, n_name FROM nation ORDER BY k")
    planted(lambda f: f.orderBy("k", F.desc("n_name")))
    report = kq.verify(frame)
    assert report.ok, str(report)
    assert report.ordered_by == ("k",)


def test_both_raising_the_same_error_is_equal(spark):
    report = kq.verify(spark.sql("SELECT sum(100 / (n_nationkey - 3)) FROM nation"))
    assert report.ok, str(report)
    assert report.error == "DIVIDE_BY_ZERO"
    assert "both raise DIVIDE_BY_ZERO" in str(report)


def test_one_side_raising_is_a_difference(spark, planted):
    planted(lambda f: spark.sql("SELECT sum(100 / (id - 3)) AS s FROM range(10)"))
    report = kq.verify(spark.sql("SELECT sum(100 / (n_nationkey + 3)) AS s FROM nation"))
    assert not report.ok
    assert "Spark returns a result, the engine raises DIVIDE_BY_ZERO" in str(report)


@pytest.fixture
def runs(spark, monkeypatch):
    """The frames that verify runs, as in a new application."""
    real, frames = module._run, []
    monkeypatch.setattr(module, "_warm_contexts", weakref.WeakSet())
    monkeypatch.setattr(module, "_run", lambda frame: (frames.append(frame), real(frame))[1])
    return frames


def test_the_first_report_of_an_application_has_the_times_of_warm_runs(spark, runs, monkeypatch):
    real, seconds = module._run, iter((6.0, 1.0, 0.5, 0.25, 0.5, 0.25))
    monkeypatch.setattr(module, "_run", lambda frame: replace(real(frame), seconds=next(seconds)))
    report = kq.verify(spark.sql(QUERY))
    assert len(runs) == 4
    # A DataFrame that has run reuses its shuffle files.
    assert len({id(frame) for frame in runs}) == 4
    assert (report.ok, report.first_runs) == (True, False)
    assert "; Spark 0.50 s, engine 0.25 s)" in str(report)
    assert not kq.verify(spark.sql(QUERY)).first_runs
    assert len(runs) == 6


def test_a_query_that_spark_runs_does_not_warm_up_the_engine(spark, runs):
    assert not kq.verify(spark.range(3).sample(1.0)).accelerated
    assert len(runs) == 1
    assert kq.verify(spark.sql(QUERY)).ok
    assert len(runs) == 5


def test_runs_that_raise_are_not_repeated(spark, runs, planted):
    planted(lambda f: spark.sql("SELECT sum(100 / (id - 3)) AS s FROM range(10)"))
    assert not kq.verify(spark.sql("SELECT sum(100 / (n_nationkey + 3)) AS s FROM nation")).ok
    assert len(runs) == 2


@pytest.mark.parametrize("cancelled_run", [1, 3], ids=["first run of Spark", "warm run of Spark"])
@pytest.mark.parametrize("by", ["Ctrl-C", "cancelJobGroup"])
def test_no_run_starts_after_a_cancelled_one(spark, runs, monkeypatch, by, cancelled_run):
    real = module.comparable_table

    def collect(frame):
        if len(runs) < cancelled_run:
            return real(frame)
        error = PySparkException("[SPARK_JOB_CANCELLED] Job 7 cancelled part of cancelled job group 1")
        error.__context__ = KeyboardInterrupt() if by == "Ctrl-C" else None
        raise error

    monkeypatch.setattr(module, "comparable_table", collect)
    with pytest.raises(KeyboardInterrupt if by == "Ctrl-C" else PySparkException):
        kq.verify(spark.sql(QUERY))
    assert len(runs) == cancelled_run


def test_slow_first_runs_are_not_repeated_and_the_report_says_so(spark, runs, monkeypatch):
    monkeypatch.setattr(module, "_MAX_FIRST_SECONDS", 0.0)
    report = kq.verify(spark.sql(QUERY))
    assert len(runs) == 2
    assert report.first_runs
    assert "; first runs, with warm-up: Spark " in str(report)
    assert "first runs" not in str(kq.verify(spark.sql(QUERY)))


def test_a_query_that_fails_is_not_repeated(spark, runs):
    report = kq.verify(spark.sql("SELECT sum(100 / (n_nationkey - 3)) FROM nation"))
    assert report.error == "DIVIDE_BY_ZERO"
    assert len(runs) == 2


def test_a_query_that_leaves_its_answer_open_says_so(spark, planted):
    frame = spark.sql("SELECT n_name, n_nationkey FROM nation LIMIT 3")
    planted(lambda f: f.withColumn("n_nationkey", F.col("n_nationkey") + 1))
    assert "several answers are correct" in str(kq.verify(frame))


def test_a_query_without_the_engine_says_so(spark):
    report = kq.verify(spark.sql("SELECT count(*) FROM nation TABLESAMPLE (100 PERCENT)").sample(1.0, seed=1))
    assert report.ok
    report = kq.verify(spark.createDataFrame([(1,)], "a int").sample(1.0, seed=1))
    assert not report.accelerated
    assert "Spark ran all of it" in str(report)


def test_the_result_of_kquery_plan_is_verified_against_its_query(spark):
    report = kq.verify(spark.sql(QUERY).transform(kq.kquery_plan, when="always"))
    assert report.accelerated
    assert report.coverage == 1.0
