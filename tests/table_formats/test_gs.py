"""Files on Google Cloud Storage: the engine reads what Spark reads by Google's connector, from a server on this machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import kquery_spark as kq
from tests.support.google_storage import GoogleServer
from tests.table_formats import buckets

BUCKET = "bucket-of-spark"


def upload_to(google: GoogleServer, directory: Path, path: str) -> None:
    """Write the files of a directory below a path of the bucket."""
    google.put_directory(BUCKET, path, directory)


@pytest.fixture(scope="module")
def upload(google: GoogleServer) -> buckets.Upload:
    return partial(upload_to, google)


@pytest.fixture(scope="module")
def bucket(spark: Any, upload: buckets.Upload, tmp_path_factory: pytest.TempPathFactory) -> str:
    buckets.upload_rows(spark, upload, tmp_path_factory.mktemp("rows"))
    return f"gs://{BUCKET}"


def test_every_format(spark, bucket):
    buckets.check_formats(spark, bucket)


def test_tpch(spark, bucket, tpch_dir, upload):
    buckets.check_tpch(spark, bucket, tpch_dir, upload)


def test_replaced_files_are_noticed(spark, bucket, upload, tmp_path):
    buckets.check_replaced(spark, bucket, tmp_path, upload)


def test_a_context_on_spark_reads_as_spark_does(spark, bucket):
    buckets.check_context(spark, bucket)


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("fs.gs.requester.pays.mode", "ENABLED", "while fs.gs.requester.pays.mode is ENABLED"),
        ("fs.gs.encryption.key", "a-secret-key", "while fs.gs.encryption.key is set"),
        ("google.cloud.proxy.address", "localhost:1", "while fs.gs.proxy.address is localhost:1"),
        ("fs.gs.storage.http.headers.x-goog-user", "x", "while fs.gs.storage.http.headers.* are set"),
        ("fs.gs.impl", "com.example.FileSystem", "files of the filesystem gs: are not supported"),
    ],
)
def test_what_arrow_cannot_follow_stays_with_spark(spark, bucket, setting, value, sentence):
    buckets.check_reason(spark, bucket, setting, value, sentence)


def test_a_bucket_that_arrow_cannot_reach_stays_with_spark(spark, bucket):
    frame = spark.read.parquet(f"{bucket}/a b/plain").groupBy("k").count()
    spark.conf.set("fs.gs.storage.root.url", "http://127.0.0.1:1")
    spark.conf.set("fs.gs.auth.type", "SERVICE_ACCOUNT_JSON_KEYFILE")
    spark.conf.set("fs.gs.auth.service.account.json.keyfile", "/no/such/file")
    spark.conf.set("fs.gs.auth.service.account.enable", "true")
    try:
        explained = kq.explain(frame)
    finally:
        for name in ("storage.root.url", "auth.type", "auth.service.account.json.keyfile"):
            spark.conf.unset(f"fs.gs.{name}")
        spark.conf.unset("fs.gs.auth.service.account.enable")
    assert any("/no/such/file" in reason for _, reason in explained.reasons), explained.reasons
