"""Spark plans each write anew, and evaluates ``current_timestamp()`` when it plans. So does the engine."""

from __future__ import annotations

import datetime
import shutil
import time

import pytest
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.spark_bridge.relations import catalog_snapshot
from kquery_spark.spark_bridge.session.bypass import bypass

PAUSE = 0.01  # longer than the resolution of Spark's clock


@pytest.fixture
def files(spark, tmp_path):
    path = str(tmp_path / "rows")
    spark.range(40).selectExpr("id", "id % 4 AS k").write.parquet(path)
    return path


@pytest.fixture
def counts(spark, files):
    return spark.read.parquet(files).groupBy("k").count()


@pytest.fixture
def enabled(spark):
    kq.enable(spark, when="always")
    yield
    kq.disable(spark)


def _times(frame):
    return {row["now"] for row in frame.collect()}


def test_each_write_has_its_own_time(spark, counts, enabled, tmp_path):
    frame = counts.withColumn("now", F.current_timestamp())
    for name in ("first", "second"):
        frame.write.parquet(str(tmp_path / name))
        time.sleep(PAUSE)
    first, second = (_times(spark.read.parquet(str(tmp_path / name))) for name in ("first", "second"))
    assert len(first) == len(second) == 1
    assert max(first) < min(second)
    collected = _times(frame)
    assert max(second) < min(collected)
    assert _times(frame) == collected  # the frame reuses the plan of its first collect, as in Spark


def test_a_writer_that_is_used_twice_writes_two_times(spark, counts, enabled, tmp_path):
    writer = counts.withColumn("now", F.current_timestamp()).write
    for name in ("first", "second"):
        writer.parquet(str(tmp_path / name))
        time.sleep(PAUSE)
    first, second = (_times(spark.read.parquet(str(tmp_path / name))) for name in ("first", "second"))
    assert max(first) < min(second)


def test_a_write_does_not_fix_the_plan_of_the_frame(spark, files, counts, enabled, tmp_path):
    counts.write.parquet(str(tmp_path / "copy"))
    counts.cache()
    try:
        assert counts.count() == 4
        shutil.rmtree(files)
        assert sorted(map(tuple, counts.collect())) == [(k, 10) for k in range(4)]  # from the cache
    finally:
        counts.unpersist()


def test_an_action_has_the_time_at_which_it_was_planned(spark, counts, enabled, monkeypatch):
    """Even if it takes long to begin: a later ``collect`` of the frame has the same time, as in Spark."""
    monkeypatch.setattr(catalog_snapshot, "_STALE_VALUE_SECONDS", 0.0)
    frame = counts.withColumn("now", F.current_timestamp())
    first = _times(frame)
    time.sleep(PAUSE)
    with bypass():
        assert _times(frame) == first


def test_what_is_made_from_an_accelerated_frame_has_the_time_of_its_own_action(spark, counts):
    fast = counts.withColumn("now", F.current_timestamp()).transform(kquery_plan, when="always")
    fast.createOrReplaceTempView("planned_anew")
    try:
        first = _times(spark.table("planned_anew"))
        time.sleep(PAUSE)
        assert max(first) < min(_times(spark.table("planned_anew")))
    finally:
        spark.catalog.dropTempView("planned_anew")
    assert "because the current time" in str(kq.explain(fast))


def test_the_time_is_that_of_the_first_action_not_of_planning(spark, counts):
    fast = counts.withColumn("now", F.current_timestamp()).transform(kquery_plan, when="always")
    time.sleep(0.5)  # without any other query meanwhile
    before = datetime.datetime.now()
    first = _times(fast)
    assert min(first) >= before
    assert _times(fast) == first  # as in Spark, which reuses the plan


def test_a_query_over_files_with_the_current_time_verifies(counts):
    report = kq.verify(counts.withColumn("now", F.current_timestamp()))
    assert report.ok, str(report)
    assert report.coverage == 1.0


def test_an_open_plan_leaves_the_current_time_to_spark(counts):
    opened = counts.withColumn("now", F.current_timestamp()).transform(kq.plan().filter("k > 1"))
    first = _times(opened.select("*"))
    time.sleep(PAUSE)
    assert max(first) < min(_times(opened.select("*")))
