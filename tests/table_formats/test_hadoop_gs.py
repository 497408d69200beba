"""Files on Google Cloud Storage by Hadoop's own connector, which Spark 4.3 takes by default; no setting says where it is."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.support.google_storage import GoogleServer
from tests.table_formats import buckets
from tests.table_formats.test_gs import upload_to


@pytest.fixture(scope="module")
def bucket(spark: Any, google: GoogleServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    buckets.upload_rows(spark, partial(upload_to, google), tmp_path_factory.mktemp("rows"))
    return "gs://bucket-of-spark"


def test_every_format(spark, bucket):
    implementation = "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem"
    assert spark.sparkContext._jsc.hadoopConfiguration().get("fs.gs.impl") == implementation
    buckets.check_formats(spark, bucket)


def test_replaced_files_are_noticed(spark, bucket, google, tmp_path):
    buckets.check_replaced(spark, bucket, tmp_path, partial(upload_to, google))


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("fs.gs.auth.type", "USER_CREDENTIALS", "only Spark has the credentials of USER_CREDENTIALS"),
        (
            "fs.gs.storage.root.url",
            "http://127.0.0.1:1",
            "while fs.gs.storage.root.url is http://127.0.0.1:1",
        ),
        (
            "google.cloud.auth.impersonation.service.account",
            "someone",
            "while fs.gs.auth.impersonation.service.account is someone",
        ),
    ],
)
def test_what_arrow_cannot_follow_stays_with_spark(spark, bucket, setting, value, sentence):
    buckets.check_reason(spark, bucket, setting, value, sentence)
