"""``kq.enable``: actions use the engine without a change of code, and give what they gave."""

import pytest
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark.accelerate import api
from kquery_spark.errors import ConfigError

QUERY = "SELECT n_regionkey AS k, count(*) AS n, max(n_name) AS m FROM nation GROUP BY n_regionkey"


@pytest.fixture
def planned(monkeypatch):
    """The frames that were given to the engine."""
    found = []
    real = api.kquery_plan

    def spy(frame, **options):
        fast = real(frame, **options)
        found.append(fast)
        return fast

    monkeypatch.setattr(api, "kquery_plan", spy)
    return found


@pytest.fixture
def enabled(spark, tables, planned):
    kq.enable(spark, when="always")
    yield planned
    kq.disable(spark)


def engine_ran(found):
    return bool(found) and all(
        "MapInArrow" in f._jdf.queryExecution().executedPlan().toString() for f in found
    )


ACTIONS = {
    "collect": lambda f: sorted(map(repr, f.collect())),
    "toArrow": lambda f: f.orderBy("k").toArrow().to_pylist(),
    "toPandas": lambda f: f.orderBy("k").toPandas().to_dict("list"),
    "count": lambda f: f.count(),
    "take": lambda f: f.orderBy("k").take(2),
    "take by name": lambda f: f.orderBy("k").take(num=2),
    "head": lambda f: f.orderBy("k").head(),
    "head 2": lambda f: f.orderBy("k").head(2),
    "first": lambda f: f.orderBy("k").first(),
    "iterator": lambda f: sorted(map(repr, f.toLocalIterator())),
    "show": lambda f: f.orderBy("k")._show_string(3, False),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_action(spark, tables, planned, name):
    expected = ACTIONS[name](spark.sql(QUERY))
    assert planned == []
    kq.enable(spark, when="always")
    try:
        assert ACTIONS[name](spark.sql(QUERY)) == expected
        assert engine_ran(planned)
        assert len(planned) == 1
    finally:
        kq.disable(spark)
    assert ACTIONS[name](spark.sql(QUERY)) == expected
    assert len(planned) == 1


def test_show_says_that_there_are_more_rows(spark, enabled, capsys):
    spark.sql(QUERY).show(3)
    assert "only showing top 3 rows" in capsys.readouterr().out
    spark.sql(QUERY).show(5)
    assert "only showing" not in capsys.readouterr().out
    assert engine_ran(enabled)


def test_writes(spark, enabled, tmp_path):
    spark.sql(QUERY).write.partitionBy("k").parquet(str(tmp_path / "out"))
    assert engine_ran(enabled)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 5
    spark.sql(QUERY).write.mode("overwrite").saveAsTable("written_by_enable")
    spark.sql(QUERY).write.insertInto("written_by_enable")
    assert spark.table("written_by_enable").count() == 10
    spark.sql("DROP TABLE written_by_enable")


def test_foreach_runs_once(spark, enabled):
    seen = spark.sparkContext.accumulator(0)
    spark.sql(QUERY).foreach(lambda row: seen.add(row.n))
    assert seen.value == 25
    spark.sql(QUERY).foreachPartition(lambda rows: seen.add(sum(1 for _ in rows)))
    assert seen.value == 30
    assert engine_ran(enabled)


def test_cached_frames_stay_cached(spark, enabled):
    cached = spark.sql(QUERY).cache()
    try:
        assert cached.count() == 5
        assert cached.groupBy().agg(F.sum("n")).first()[0] == 25
        assert cached.is_cached
    finally:
        cached.unpersist()


def test_the_setting_switches_a_session_off(spark, enabled):
    spark.conf.set("spark.kquery.enabled", "false")
    try:
        assert spark.sql(QUERY).count() == 5
        assert "MapInArrow" not in enabled[0]._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.conf.unset("spark.kquery.enabled")


def test_other_sessions_are_left_alone(spark, enabled):
    other = spark.newSession()
    assert other.range(10).groupBy().count().collect()[0][0] == 10
    assert enabled == []


def test_wrong_use_of_actions_is_reported_as_before(spark, enabled):
    with pytest.raises(Exception, match=r"NOT_EXPECTED_TYPE|should be an int"):
        spark.sql(QUERY).show("three")
    with pytest.raises(TypeError):
        spark.sql(QUERY).collect(3)


def test_enabling_twice_and_bad_options(spark, tables):
    with pytest.raises(ConfigError, match="when must be"):
        kq.enable(spark, when="sometimes")
    kq.enable(spark)
    kq.enable(spark, when="always")
    kq.disable(spark)
    kq.disable(spark)
    assert spark.sql(QUERY).count() == 5


def test_streams_and_commands_pass(spark, enabled, tmp_path):
    assert spark.sql("SHOW TABLES").count() > 0
    spark.sql(f"CREATE TABLE made USING parquet LOCATION '{tmp_path}/made' AS {QUERY}")
    try:
        assert spark.table("made").count() == 5
    finally:
        spark.sql("DROP TABLE made")
