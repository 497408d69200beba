"""A failure of the engine at run time: read-only actions and writes to files run again on Spark, nothing else does."""

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


@pytest.mark.parametrize(
    ("mode", "save"),
    [
        *((m, lambda writer, path: writer.parquet(path)) for m in ("errorifexists", "ignore", "overwrite")),
        ("append", lambda writer, path: writer.format("json").save(path)),
        ("overwrite", lambda writer, path: writer.option("path", path).save()),
        ("ignore", lambda writer, path: writer.partitionBy("k").orc(path)),
        ("append", lambda writer, path: writer.partitionBy("k").orc(path)),
    ],
)
def test_a_failed_write_to_files_runs_again_on_spark(spark, broken, tmp_path, mode, save):
    frame, fast = broken()
    ours, sparks = str(tmp_path / "ours"), str(tmp_path / "sparks")
    save(frame.write.mode(mode), sparks)
    with pytest.warns(
        FallbackWarning, match="the engine failed in write, so Spark runs the query again: SourceError"
    ):
        save(fast.write.mode(mode), ours)
    kind = "json" if list((tmp_path / "ours").glob("*.json")) else "parquet"
    kind = "orc" if list((tmp_path / "ours").glob("k=*")) else kind
    read = spark.read.format(kind)
    assert sorted(read.load(ours).collect()) == sorted(read.load(sparks).collect())
    assert read.load(ours).count() == 7
    assert [p.name for p in (tmp_path / "ours").glob("_*")] == ["_SUCCESS"]


def test_what_a_failed_write_adds_to_stays(spark, broken, tmp_path):
    _, fast = broken()
    path = str(tmp_path / "out")
    spark.range(3).selectExpr("id AS k", "id AS s").write.parquet(path)
    with pytest.raises(Exception, match="already exists"):
        fast.write.parquet(path)
    fast.write.mode("ignore").parquet(path)
    assert spark.read.parquet(path).count() == 3
    with pytest.warns(FallbackWarning, match="failed in write"):
        fast.write.mode("append").parquet(path)
    assert spark.read.parquet(path).count() == 10
    with pytest.warns(FallbackWarning, match="failed in write"):
        fast.write.mode("overwrite").parquet(path)
    assert spark.read.parquet(path).count() == 7


@pytest.mark.parametrize("mode", ["errorifexists", "ignore", "overwrite", "append"])
def test_a_failed_write_to_a_table_of_files_runs_again_on_spark(spark, broken, mode):
    _, fast = broken()
    try:
        with pytest.warns(FallbackWarning, match="failed in write"):
            fast.write.mode(mode).saveAsTable("written")
        assert spark.table("written").count() == 7
        with pytest.warns(FallbackWarning, match="failed in write"):
            fast.write.insertInto("written")
        assert spark.table("written").count() == 14
    finally:
        spark.sql("DROP TABLE IF EXISTS written")


def test_a_write_of_what_the_engine_declines_at_run_time_is_sparks(spark, tmp_path):
    spark.sql("SELECT '2024-01-05 10:00:00 EST' AS t, id FROM range(10)").write.parquet(str(tmp_path / "in"))
    frame = spark.read.parquet(str(tmp_path / "in")).selectExpr("id", "CAST(t AS timestamp) AS t")
    fast = frame.transform(kquery_plan, when="always", fallback="spark")
    with pytest.warns(FallbackWarning, match="failed in write, so Spark runs the query again: Unsupported"):
        fast.write.parquet(str(tmp_path / "out"))
    found = spark.read.parquet(str(tmp_path / "out"))
    assert sorted(found.collect()) == sorted(frame.collect())


def test_an_error_of_a_written_query_is_sparks_own(spark, tables, tmp_path):
    frame = spark.sql("SELECT sum(1 / (n_nationkey - 3)) AS s FROM nation")
    fast = frame.transform(kquery_plan, when="always")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO") as raised:
            fast.write.parquet(str(tmp_path / "out"))
    assert "kquery_spark" not in str(raised.value)
    assert not list((tmp_path / "out").glob("*"))


def test_other_writes_are_never_run_again(spark, broken, tmp_path):
    _, fast = broken()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception, match="has changed since the query was planned"):
            fast.write.format("noop").mode("overwrite").save()
        with pytest.raises(Exception, match="has changed"):
            fast.foreach(print)
        spark.conf.set("mapreduce.fileoutputcommitter.algorithm.version", "2")
        try:
            with pytest.raises(Exception, match="has changed since the query was planned"):
                fast.write.mode("append").parquet(str(tmp_path / "out"))
        finally:
            spark.conf.unset("mapreduce.fileoutputcommitter.algorithm.version")
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_fallback_error_does_not_write_again(broken, tmp_path):
    _, fast = broken(fallback="error")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception, match="has changed since the query was planned"):
            fast.write.parquet(str(tmp_path / "out"))


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
    def bug(*_):
        raise KeyError("planner")

    monkeypatch.setattr("kquery_spark.accelerate.api.plan_and_assemble", bug)
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
    text = fast._kquery.frame_to_write()._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" in text
    assert "FileScan" not in text
    assert "Union" not in text
    assert fast._kquery.frame_to_write().schema == fast.schema
    fast.write.parquet(str(tmp_path / "out"))
    assert spark.read.parquet(str(tmp_path / "out")).count() == 5
    assert kq.verify(fast).ok
