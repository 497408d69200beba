"""Files in buckets: a real S3 server on this machine, read by a context without Spark; and what never shows secrets."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.fs as pafs
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import ConfigError, KQueryError, SourceError
from kquery_spark.sources.files import local_path
from kquery_spark.sources.object_stores.connections import (
    connect,
    reach,
    store_of_options,
    stores_named_in,
)
from kquery_spark.sources.object_stores.s3 import S3Store
from kquery_spark.sources.object_stores.store import without_secrets
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.stages.serialization import to_bytes
from tests.support.s3 import SECRET, new_bucket, s3_server, storage_options


def rows(ctx: kq.ExecutionContext, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in ctx.sql(sql).collect()]


@pytest.fixture(scope="module")
def filesystem(s3_endpoint: str) -> pafs.S3FileSystem:
    return new_bucket(s3_endpoint, "data-of-tests")


@pytest.fixture(scope="module")
def bucket(filesystem: pafs.S3FileSystem) -> str:
    """A bucket with the same rows in each format, some in directories that are partitions."""
    fs = filesystem
    table = pa.table({"id": range(1000), "s": [f"t{i % 7}" for i in range(1000)]})
    for year in (2019, 2020):
        for part in range(3):
            with fs.open_output_stream(f"data-of-tests/a b/year={year}/part-{part}.parquet") as file:
                pq.write_table(table, file, row_group_size=300)
    with fs.open_output_stream("data-of-tests/rows.csv") as file:
        pa_csv.write_csv(table, file)
    with fs.open_output_stream("data-of-tests/rows.orc") as file:
        orc.write_table(table, file)
    with fs.open_output_stream("data-of-tests/rows.json") as file:
        file.write("\n".join(f'{{"id": {i}, "s": "t{i % 7}"}}' for i in range(1000)).encode())
    return "data-of-tests"


@pytest.fixture
def options(s3_endpoint: str) -> dict[str, Any]:
    return storage_options(s3_endpoint)


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_parquet_files_and_their_partitions(bucket, options, scheme):
    ctx = kq.ExecutionContext()
    ctx.register_parquet("t", f"{scheme}://{bucket}/a b", storage_options=options)
    sql = "SELECT year, s, count(*) AS n, max(id) AS m FROM t WHERE id < 700 GROUP BY year, s ORDER BY 1, 2"
    assert rows(ctx, sql)[0] == (2019, "t0", 300, 693)
    assert rows(ctx, "SELECT count(*) FROM t") == [(6000,)]


@pytest.mark.parametrize("name", ["csv", "json", "orc"])
def test_other_formats(bucket, options, name):
    ctx = kq.ExecutionContext()
    getattr(ctx, f"register_{name}")("t", f"s3://{bucket}/rows.{name}", storage_options=options)
    assert rows(ctx, "SELECT count(*), sum(id), min(s) FROM t") == [(1000, 499500, "t0")]


def test_globs(bucket, options):
    ctx = kq.ExecutionContext()
    ctx.register_parquet("t", f"s3://{bucket}/a b/year=20*/part-[01].parquet", storage_options=options)
    assert rows(ctx, "SELECT count(*) FROM t") == [(4000,)]


def test_an_object_that_was_replaced_is_an_error(filesystem, bucket, options):
    fs = filesystem

    def write(rows: int) -> None:
        with fs.open_output_stream(f"{bucket}/replaced.parquet") as file:
            pq.write_table(pa.table({"id": range(rows)}), file)

    write(1000)
    ctx = kq.ExecutionContext()
    ctx.register_parquet("t", f"s3://{bucket}/replaced.parquet", storage_options=options)
    assert rows(ctx, "SELECT sum(id) FROM t") == [(499500,)]
    write(10)
    with pytest.raises(KQueryError, match=r"replaced\.parquet has changed since the query was planned"):
        rows(ctx, "SELECT sum(id) FROM t")
    fs.delete_file(f"{bucket}/replaced.parquet")
    with pytest.raises(KQueryError, match=r"replaced\.parquet (has changed|does not exist)"):
        rows(ctx, "SELECT max(id) FROM t")


def test_a_missing_bucket_and_a_missing_key_are_named(options):
    ctx = kq.ExecutionContext()
    with pytest.raises(KQueryError, match="no-such-bucket"):
        ctx.register_parquet("t", "s3://no-such-bucket/x", storage_options=options)


def test_wrong_options_are_named(options):
    ctx = kq.ExecutionContext()
    with pytest.raises(
        ConfigError, match=r"storage_options have no aws_secret; there are access_key, .*secret_key"
    ):
        ctx.register_parquet("t", "s3://b/x", storage_options={"aws_secret": "x"})
    with pytest.raises(ConfigError, match="not for /tmp/x"):
        ctx.register_parquet("t", "/tmp/x", storage_options=options)


def test_a_bucket_of_the_same_name_elsewhere_is_another_one(bucket, options):
    early, late = kq.ExecutionContext(), kq.ExecutionContext()
    early.register_parquet("t", f"s3://{bucket}/a b", storage_options=options)
    assert rows(early, "SELECT count(*), sum(id) FROM t") == [(6000, 2997000)]
    with s3_server() as elsewhere:
        late.register_parquet("t", f"s3://{bucket}/a b", storage_options=storage_options(elsewhere))
        assert rows(late, "SELECT count(*), sum(id) FROM t") == [(6000, 2997000)]
        with pytest.raises(KQueryError, match="has changed since the query was planned"):
            rows(early, "SELECT min(id), max(s) FROM t")
    connect([store_of_options(f"s3://{bucket}/x", options)])
    assert rows(early, "SELECT min(id), max(s) FROM t") == [(0, "t6")]


def test_an_endpoint_is_the_same_however_it_is_written():
    one = store_of_options("s3://b/x", {"aws_endpoint_url": "http://h:1/"})
    other = store_of_options("s3://b/x", {"endpoint_override": "h:1", "scheme": "http"})
    assert one == other and one.stamp == other.stamp != S3Store("b").stamp


def test_secrets_are_not_shown():
    store = S3Store("b", (("access_key", "someone"), ("secret_key", SECRET), ("session_token", "a-token")))
    assert SECRET not in repr(store) and "a-token" not in repr(store)
    assert without_secrets(f"key {SECRET} with a-token", store) == "key (hidden) with (hidden)"
    assert pickle.loads(pickle.dumps(store)) == store


def test_plans_have_no_secret_and_say_which_buckets_they_read(bucket, options):
    ctx = kq.ExecutionContext()
    ctx.register_parquet("t", f"s3a://{bucket}/a b", storage_options=options)
    assert SECRET not in ctx.sql("SELECT sum(id) FROM t").explain()
    data = to_bytes(parquet_source([f"s3a://{bucket}/a b"]))
    assert SECRET.encode() not in data
    assert [store.bucket for store in stores_named_in(data)] == [bucket]


@pytest.mark.parametrize(
    ("path", "inner"),
    [("s3://b/k/x y%20z", "b/k/x y%20z"), ("s3a://b", "b"), ("s3n://b/", "b"), ("s3a://b/k/", "b/k")],
)
def test_paths_are_taken_as_they_are(path, inner):
    connect([S3Store("b", (("anonymous", True), ("region", "us-east-1")))])
    reached = reach(path)
    assert reached is not None and reached[1] == inner


@pytest.mark.parametrize("path", ["dbfs:/x", "gs://b/x", "abfss://c@a/x", "hdfs://h/x", "s3a://b/x"])
def test_paths_of_other_filesystems_are_not_local(path):
    assert local_path(path) is None


def test_a_path_that_arrow_has_no_filesystem_for_is_an_error():
    with pytest.raises(SourceError, match="dbfs:/x"):
        kq.ExecutionContext().register_parquet("t", "dbfs:/x")
