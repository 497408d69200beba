"""``kquery_spark.testing``: equal answers pass, and planted differences are shown by chispa's diffs."""

import importlib

import pytest
from pyspark.sql import functions as F

from benchmarks import tpch
from kquery_spark.testing import (
    DataFramesNotEqualError,
    SchemasNotEqualError,
    assert_accelerated,
    assert_same_as_spark,
)

verify = importlib.import_module("kquery_spark.verify.verify")
QUERY = "SELECT n_regionkey AS k, count(*) AS n, sum(n_nationkey / 7D) AS s FROM nation GROUP BY n_regionkey"


@pytest.fixture(scope="module", autouse=True)
def _tables(spark, tpch_dir):
    tpch.register(spark, tpch_dir)


@pytest.fixture
def planted(monkeypatch):
    """``planted(change)``: the engine's result is changed before it is compared."""
    real = verify.assemble

    def plant(change):
        monkeypatch.setattr(verify, "assemble", lambda planned, parts: change(real(planned, parts)))

    return plant


def test_equal_answers_return_the_report(spark):
    report = assert_same_as_spark(QUERY)
    assert report.accelerated
    assert report.rows == 5
    assert assert_same_as_spark(spark.sql(QUERY), spark).ok


def test_a_different_value_is_shown_beside_the_right_one(spark, planted):
    planted(lambda f: f.withColumn("n", F.expr("if(k = 3, n + 1, n)")))
    with pytest.raises(DataFramesNotEqualError) as failure:
        assert_same_as_spark(QUERY)
    shown = str(failure.value)
    assert "column n: 1 of 5 values differ" in shown
    assert "n=5" in shown
    assert "n=6" in shown
    assert "k=2" not in shown  # an equal row is not shown


def test_missing_and_extra_rows_are_shown(spark, planted):
    planted(lambda f: f.where("k <> 3"))
    with pytest.raises(DataFramesNotEqualError, match=r"(?s)Spark returns 5 rows, the engine 4.*k=3.*None"):
        assert_same_as_spark(QUERY)
    planted(lambda f: f.union(f.where("k = 2")))
    with pytest.raises(DataFramesNotEqualError, match=r"(?s)the engine 6.*None.*k=2"):
        assert_same_as_spark(QUERY)


def test_a_wrong_order_is_shown(spark, planted):
    planted(lambda f: f.orderBy("k"))
    with pytest.raises(DataFramesNotEqualError, match="k=4"):
        assert_same_as_spark(spark.sql(QUERY).orderBy(F.desc("k")))


def test_a_different_type_is_shown(spark, planted):
    planted(lambda f: f.withColumn("n", F.col("n").cast("int")))
    with pytest.raises(SchemasNotEqualError, match=r"(?s)n is bigint not nullable.*LongType.*IntegerType"):
        assert_same_as_spark(QUERY)


def test_an_error_on_one_side_only_fails(spark, planted):
    planted(lambda f: spark.sql("SELECT sum(100 / (id - 3)) AS s FROM range(10)"))
    with pytest.raises(AssertionError, match="the engine raises DIVIDE_BY_ZERO"):
        assert_same_as_spark("SELECT sum(100 / (n_nationkey + 3)) AS s FROM nation")


def test_dates_that_python_lacks_do_not_hide_the_difference(spark, planted):
    planted(lambda f: f.withColumn("d", F.expr("date_add(d, 1)")))
    query = "SELECT make_date(n_nationkey + 9990, 1, 1) AS d FROM nation"
    with pytest.raises(DataFramesNotEqualError, match="25 of 25 values differ"):
        assert_same_as_spark(query)


def test_a_query_that_the_engine_runs_passes_and_another_fails_with_the_reason(spark):
    assert_accelerated(QUERY)
    with pytest.raises(AssertionError, match="the engine runs 0% of the query, not 100%"):
        assert_accelerated(spark.range(3).sample(0.5, seed=1))


def test_sql_needs_a_session(monkeypatch):
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda cls: None))
    with pytest.raises(ValueError, match="pass one as the argument spark"):
        assert_same_as_spark(QUERY)
