"""``kq.enable``: every action on every kind of frame that falls back to Spark is what it is without, and py4j stays in step."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import threading
import time
import warnings

import pandas as pd
import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType

import kquery_spark as kq
from kquery_spark.accelerate import api
from kquery_spark.accelerate.enable import disable_everywhere, enable_everywhere
from tests.conftest import exhaustive, uncompiled

ROWS = [(i, f"name {i}") for i in range(12)]
SCHEMA = "id long, name string"


@pytest.fixture(scope="module")
def files(spark, tmp_path_factory):
    """Parquet and text files, and a table of the catalog."""
    directory = tmp_path_factory.mktemp("enable")
    frame = spark.createDataFrame(ROWS, SCHEMA).coalesce(1)
    frame.write.parquet(str(directory / "parquet"))
    (directory / "lines.txt").write_text("one\ntwo\nthree\n")
    spark.sql("DROP TABLE IF EXISTS enabled_source")
    frame.write.saveAsTable("enabled_source")
    frame.createOrReplaceTempView("enabled_view")
    with uncompiled(spark):
        yield directory
    spark.sql("DROP TABLE enabled_source")
    spark.catalog.dropTempView("enabled_view")


def _plus_one(column):
    return udf(lambda value: value + 1, LongType(), useArrow=False)(column)


def _pandas(batches):
    yield from batches


def _stream(spark, files):
    return spark.readStream.schema(SCHEMA).parquet(str(files / "parquet"))


FRAMES = {
    "range": lambda spark, files: spark.range(0, 30, 3).selectExpr("id", "cast(id AS string) AS name"),
    "rows": lambda spark, files: spark.createDataFrame(ROWS, SCHEMA),
    "pandas": lambda spark, files: spark.createDataFrame(pd.DataFrame(ROWS, columns=["id", "name"])),
    "no rows": lambda spark, files: spark.createDataFrame([], SCHEMA),
    "cached": lambda spark, files: spark.read.parquet(str(files / "parquet")).where("id < 9").cache(),
    "text": lambda spark, files: spark.read.text(str(files / "lines.txt")).selectExpr("value AS name"),
    "repartitioned": lambda spark, files: spark.createDataFrame(ROWS, SCHEMA).repartition(2, "id").sort("id"),
    "RDD": lambda spark, files: spark.sparkContext.parallelize(ROWS, 2).toDF(["id", "name"]),
    "checkpoint": lambda spark, files: spark.range(5).selectExpr("id", "'x' AS name").localCheckpoint(),
    "UDF": lambda spark, files: spark.table("enabled_view").select(_plus_one("id").alias("id"), "name"),
    "mapInPandas": lambda spark, files: spark.range(3).mapInPandas(_pandas, "id long"),
    "Parquet": lambda spark, files: spark.read.parquet(str(files / "parquet")),
    "Parquet filter": lambda spark, files: spark.read.parquet(str(files / "parquet")).where("id % 3 = 1"),
    "view": lambda spark, files: spark.table("enabled_view"),
    "table": lambda spark, files: spark.table("enabled_source").where("id > 4"),
    "command": lambda spark, files: spark.sql("SHOW FUNCTIONS LIKE 'ab*'"),
    "stream": _stream,
}


def _written(frame, files, save):
    """What a write leaves behind."""
    path = str(files / "out")
    shutil.rmtree(path, ignore_errors=True)
    save(frame.write, path)
    return sorted(map(repr, frame.sparkSession.read.parquet(path).collect()))


def _table(frame, save):
    spark = frame.sparkSession
    try:
        save(frame, "enabled_target")
        return sorted(map(repr, spark.sql("SELECT * FROM enabled_target").collect()))
    finally:
        spark.sql("DROP TABLE IF EXISTS enabled_target")


def _accumulated(frame, act):
    total = frame.sparkSession.sparkContext.accumulator(0)
    act(total)
    return total.value


def _twice(save):
    def run(frame, table):
        frame.limit(0).write.saveAsTable(table)
        save(frame, table)

    return run


ACTIONS = {
    "collect": lambda f, _: f.collect(),
    "take": lambda f, _: f.take(2),
    "head": lambda f, _: f.head(),
    "head 2": lambda f, _: f.head(2),
    "first": lambda f, _: f.first(),
    "tail": lambda f, _: f.tail(2),
    "count": lambda f, _: f.count(),
    "isEmpty": lambda f, _: f.isEmpty(),
    "show": lambda f, _: f._show_string(3, False, True),
    "toPandas": lambda f, _: f.toPandas().to_dict("list"),
    "toArrow": lambda f, _: f.toArrow().to_pylist(),
    "toLocalIterator": lambda f, _: list(f.toLocalIterator(prefetchPartitions=True)),
    "foreach": lambda f, _: _accumulated(f, lambda total: f.foreach(lambda row: total.add(len(row)))),
    "foreachPartition": lambda f, _: _accumulated(f, lambda n: f.foreachPartition(lambda rows: n.add(len(list(rows))))),
    "write": lambda f, files: _written(f, files, lambda w, path: w.mode("overwrite").parquet(path)),
    "save": lambda f, files: _written(f, files, lambda w, path: w.format("parquet").save(path)),
    "noop": lambda f, _: f.write.format("noop").mode("append").save(),
    "saveAsTable": lambda f, _: _table(f, lambda f, t: f.write.saveAsTable(t)),
    "insertInto": lambda f, _: _table(f, _twice(lambda f, t: f.write.insertInto(t))),
    "writeTo": lambda f, _: _table(f, lambda f, t: f.writeTo(t).using("parquet").create()),
    "mergeInto": lambda f, _: f.mergeInto("enabled_source", F.lit(True)).whenMatched().delete().merge(),
    "wrong arguments": lambda f, _: f.take(),
    "unknown argument": lambda f, _: f.collect(limit=3),
    "argument of a wrong type": lambda f, _: f.take("two"),
    "negative": lambda f, _: f.take(-1),
    "two arguments too many": lambda f, _: f.take(1, 2, 3),
    "show three": lambda f, _: f.show("three"),
}  # fmt: skip
# Wrappers differ by action and frames by what ``kquery_plan`` gives, so not every pair takes its time here.
ALWAYS = ("collect", "take", "count", "show", "toPandas", "write", "noop")
EVERY_ACTION = ("Parquet filter",)

_calls = itertools.count(1000)


def in_step(spark):
    """Whether a call to the JVM gets its own answer."""
    number = next(_calls)
    return spark._jvm.java.lang.Math.addExact(number, 1) == number + 1


def outcome(action, frame, files):
    """What an action gives, or what is raised, but for what differs from run to run."""
    try:
        return action(frame, files)
    except Exception as error:
        condition = getattr(error, "getCondition", lambda: None)()
        return type(error), condition or str(error).split("\n")[0].split(" o")[0]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        *(pytest.param(kind, ALWAYS, id=kind) for kind in FRAMES if kind not in EVERY_ACTION),
        *(
            pytest.param(
                kind,
                tuple(ACTIONS),
                id=f"{kind}, every action",
                marks=() if kind in EVERY_ACTION else exhaustive,
            )
            for kind in FRAMES
        ),
    ],
)
def test_actions_on_queries_that_fall_back_are_those_of_spark(spark, files, kind, names):
    frame = FRAMES[kind](spark, files)
    actions = {name: ACTIONS[name] for name in names}
    expected = {name: outcome(action, frame, files) for name, action in actions.items()}
    for when in ("auto", "always"):
        kq.enable(spark, when=when)
        try:
            for name, action in actions.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("error", kq.FallbackWarning)
                    assert outcome(action, frame, files) == expected[name], (name, when)
                assert in_step(spark), (name, when)
        finally:
            kq.disable(spark)
    frame.unpersist()


@pytest.mark.parametrize("condition", ["true", "id % 3 = 1"])
def test_overwriting_what_is_read_is_as_before(spark, files, tmp_path, condition):
    def overwrite(name):
        path = str(tmp_path / name)
        shutil.copytree(files / "parquet", path)
        frame = spark.read.parquet(path).where(condition)
        found = outcome(lambda f, _: f.write.mode("overwrite").parquet(path), frame, files)
        assert in_step(spark)
        return found

    expected = overwrite("plain")
    for when in ("auto", "always"):
        kq.enable(spark, when=when)
        try:
            assert overwrite(when) == expected
        finally:
            kq.disable(spark)


def test_a_batch_of_a_stream_is_written_as_before(spark, files, tmp_path):
    seen = []

    def keep(batch, number):
        batch.write.mode("append").parquet(str(tmp_path / "out"))
        seen.append(batch.count())

    enable_everywhere(when="always")
    try:
        query = _stream(spark, files).writeStream.foreachBatch(keep).trigger(availableNow=True)
        query.option("checkpointLocation", str(tmp_path / "state")).start().awaitTermination()
    finally:
        disable_everywhere()
    assert seen == [12]
    assert spark.read.parquet(str(tmp_path / "out")).count() == 12


@pytest.mark.parametrize("error", [RuntimeError("planning"), KeyboardInterrupt(), RecursionError("deep")])
def test_an_error_in_a_wrapper_leaves_the_session_usable(spark, files, monkeypatch, error):
    frame = spark.read.parquet(str(files / "parquet"))

    def fail(*_, **__):
        raise error

    kq.enable(spark, when="always")
    try:
        with monkeypatch.context() as patched:
            patched.setattr(api, "kquery_plan", fail)
            for act in (lambda: frame.count(), lambda: frame.write, lambda: frame.take(1)):
                with pytest.raises(type(error)):
                    act()
                assert in_step(spark)
        planned = []
        real = api.kquery_plan
        monkeypatch.setattr(api, "kquery_plan", lambda f, **o: planned.append(f) or real(f, **o))
        assert frame.count() == 12  # and the engine is asked again
        assert len(planned) == 1
    finally:
        kq.disable(spark)


def test_an_error_of_planning_is_a_warning_where_spark_may_step_in(spark, files, monkeypatch):
    from kquery_spark.accelerate import api as transform
    from kquery_spark.errors import Unsupported

    frame = spark.read.parquet(str(files / "parquet"))
    for error in (Unsupported("A column has an odd name."), ValueError("odd")):

        def fail(*_, error=error):
            raise error

        monkeypatch.setattr(transform, "plan_and_assemble", fail)
        kq.enable(spark, when="always")
        try:
            with pytest.warns(kq.FallbackWarning, match="could not plan the query, so Spark runs it: .*odd"):
                assert frame.count() == 12
        finally:
            kq.disable(spark)


def test_ctrl_c_ends_an_action_and_not_the_session(spark, files):
    slow = spark.range(4).select(F.expr("java_method('java.lang.Thread', 'sleep', 20000L)"))
    kq.enable(spark, when="always")
    ctrl_c = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    begun = time.monotonic()
    try:
        ctrl_c.start()
        with pytest.raises(KeyboardInterrupt):
            slow.write.format("noop").mode("append").save()
    finally:
        ctrl_c.cancel()
        kq.disable(spark)
    assert time.monotonic() - begun < 15


def test_two_sessions_and_threads_have_options_of_their_own(spark, files, monkeypatch):
    """Each of two sessions, one of them for a thread of its own, plans with its options; a third does not plan."""
    asked = []
    real = api.kquery_plan

    def spy(frame, **options):
        asked.append((threading.current_thread().name, options["when"]))
        return real(frame, **options)

    monkeypatch.setattr(api, "kquery_plan", spy)
    second, third = spark.newSession(), spark.newSession()
    path = str(files / "parquet")
    found: dict[str, list] = {}

    def work(session):
        name = threading.current_thread().name
        found[name] = [session.read.parquet(path).where("id > 3").count() for _ in range(2)]

    kq.enable(spark, when="always")
    kq.enable(second, when="auto")
    try:
        threads = [
            threading.Thread(target=work, args=(session,), name=name)
            for name, session in [("one", spark), ("two", second), ("three", third), ("four", spark)]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    finally:
        kq.disable(spark)
        kq.disable(second)
    assert found == dict.fromkeys(["one", "two", "three", "four"], [8] * 2)
    assert sorted(set(asked)) == [("four", "always"), ("one", "always"), ("two", "auto")]
    assert len(asked) == 6


def test_the_engine_still_runs_what_it_should_after_frames_that_stay(spark, files, tmp_path):
    path = str(files / "parquet")
    kq.enable(spark, when="always")
    try:
        spark.range(3).write.parquet(str(tmp_path / "range"))
        grouped = spark.read.parquet(path).groupBy((F.col("id") % 2).alias("k")).count()
        assert sorted(grouped.collect()) == [Row(k=0, count=6), Row(k=1, count=6)]
        grouped.write.parquet(str(tmp_path / "grouped"))
        assert spark.read.parquet(str(tmp_path / "grouped")).count() == 2
    finally:
        kq.disable(spark)
