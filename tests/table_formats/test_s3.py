"""Files on S3: the engine reads what Spark reads by s3a, whole, from a real server on this machine."""

from __future__ import annotations

from typing import Any

import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.accelerate.checks import check
from tests.support.s3 import SECRET, new_bucket
from tests.table_formats import buckets
from tests.table_formats.queries import GROUPED, ROWS, check_cache


@pytest.fixture(scope="module")
def bucket(spark: Any, s3_endpoint: str) -> str:
    new_bucket(s3_endpoint, "bucket-of-spark")
    spark.sql(ROWS).repartition(3).write.partitionBy("k").parquet("s3a://bucket-of-spark/a b/plain")
    return "s3a://bucket-of-spark"


@pytest.fixture
def table(spark: Any, bucket: str) -> str:
    spark.read.parquet(f"{bucket}/a b/plain").createOrReplaceTempView("on_s3")
    return "on_s3"


def test_parquet_with_partitions(spark, table):
    check(spark.sql(GROUPED.format(t=table)), coverage=1.0)
    check(spark.sql(f"SELECT count(*), sum(d) FROM {table} WHERE k > 3 AND id < 900"), coverage=1.0)
    check(
        spark.sql(f"SELECT a.k, count(*) FROM {table} a JOIN {table} b ON a.id = b.id + 1 GROUP BY a.k"),
        coverage=1.0,
    )


def test_a_cached_table(spark, table):
    check_cache(spark, table, "cached rows of s3a://bucket-of-spark/a b/plain are not supported")


@pytest.mark.parametrize("name", ["orc", "csv", "json"])
def test_other_formats(spark, bucket, name):
    path = f"{bucket}/{name}"
    spark.sql(ROWS).repartition(2).write.format(name).save(path)
    frame = spark.read.schema("id bigint, k bigint, s string, d double").format(name).load(path)
    check(frame.groupBy("k").count(), coverage=1.0)


def test_no_secret_is_shown(spark, bucket):
    buckets.check_hidden(spark, bucket, SECRET)


def test_frames_are_written_while_enabled(spark, bucket):
    path, lost = f"{bucket}/kept", f"{bucket}/overwritten"
    for directory in (path, lost):
        spark.sql(ROWS).write.parquet(directory)
    kq.enable(spark)
    try:
        spark.read.parquet(path).where("k < 3").write.mode("overwrite").parquet(f"{bucket}/copy")
        # Spark deletes what it is about to read
        with pytest.raises(Exception, match=r"FILE_NOT_EXIST"):
            spark.read.parquet(lost).write.mode("overwrite").parquet(lost)
    finally:
        kq.disable(spark)
    assert spark.read.parquet(f"{bucket}/copy").count() == spark.read.parquet(path).where("k < 3").count()


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("fs.s3a.requester.pays.enabled", "true", "while fs.s3a.requester.pays.enabled is true"),
        ("fs.s3a.bucket.bucket-of-spark.encryption.algorithm", "CSE-KMS", "is CSE-KMS"),
        (
            "fs.s3a.aws.credentials.provider",
            "com.example.Provider",
            "only Spark has the credentials of com.example.Provider",
        ),
    ],
)
def test_what_arrow_cannot_follow_stays_with_spark(spark, bucket, setting, value, sentence):
    buckets.check_reason(spark, bucket, setting, value, sentence)


def test_replaced_files_are_noticed(spark, bucket):
    path = f"{bucket}/replaced"
    spark.sql(ROWS).coalesce(1).write.parquet(path)
    fast = spark.read.parquet(path).groupBy("k").count().transform(kquery_plan, when="always")
    assert sum(row[1] for row in fast.collect()) == 2000
    spark.sql(ROWS).where("id < 100").coalesce(1).write.mode("overwrite").parquet(path)
    again = spark.read.parquet(path).groupBy("k").count().transform(kquery_plan, when="always")
    assert sum(row[1] for row in again.collect()) == 100


def test_a_context_on_spark_reads_as_spark_does(spark, bucket):
    buckets.check_context(spark, bucket)


def test_more_files_than_the_driver_can_look_at_are_sparks(spark, table, monkeypatch):
    monkeypatch.setattr("kquery_spark.frontends.catalyst.plans.many_files._ALWAYS_INSPECTED_FILES", 3)
    explained = kq.explain(spark.sql(GROUPED.format(t=table)))
    assert any("the driver would take too long" in reason for _, reason in explained.reasons)
    few = spark.sql(f"SELECT s, count(*) FROM {table} WHERE k = 3 GROUP BY s")
    check(few, coverage=1.0)
