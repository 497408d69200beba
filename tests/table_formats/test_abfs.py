"""Files on Azure: the engine reads what Spark reads by abfs, from Microsoft's emulator on this machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.azure_storage import HOST, KEY, new_container, put_directory
from tests.table_formats import buckets

CONTAINER = "container-of-spark"


def _upload(fs: Any, directory: Path, path: str) -> None:
    put_directory(fs, f"{CONTAINER}/{path}".rstrip("/"), directory)


@pytest.fixture(scope="module")
def upload(azure_endpoint: str) -> buckets.Upload:
    return partial(_upload, new_container(azure_endpoint, CONTAINER))


@pytest.fixture(scope="module")
def bucket(spark: Any, upload: buckets.Upload, tmp_path_factory: pytest.TempPathFactory) -> str:
    buckets.upload_rows(spark, upload, tmp_path_factory.mktemp("rows"))
    return f"abfs://{CONTAINER}@{HOST}"


def test_every_format(spark, bucket):
    buckets.check_formats(spark, bucket)


def test_tpch(spark, bucket, tpch_dir, upload):
    buckets.check_tpch(spark, bucket, tpch_dir, upload)


def test_replaced_files_are_noticed(spark, bucket, upload, tmp_path):
    buckets.check_replaced(spark, bucket, tmp_path, upload)


def test_a_context_on_spark_reads_as_spark_does(spark, bucket):
    buckets.check_context(spark, bucket)


def test_no_secret_is_shown(spark, bucket):
    buckets.check_hidden(spark, bucket, KEY)


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        (f"fs.azure.account.auth.type.{HOST}", "Custom", "only Spark has the credentials of Custom"),
        (f"fs.azure.account.keyprovider.{HOST}", "com.example.Keys", "the credentials of com.example.Keys"),
        ("fs.azure.client-provided-encryption-key", "a-secret", "client-provided-encryption-key is set"),
    ],
)
def test_what_arrow_cannot_follow_stays_with_spark(spark, bucket, setting, value, sentence):
    buckets.check_reason(spark, bucket, setting, value, sentence)
