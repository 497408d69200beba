"""Buckets of Google Cloud Storage, read by a context without Spark from a server on this machine."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import ConfigError, KQueryError
from kquery_spark.sources.object_stores.connections import store_of_options, stores_named_in
from kquery_spark.sources.object_stores.google import CREDENTIALS_VARIABLE, GoogleStore
from kquery_spark.sources.object_stores.store import without_secrets
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.stages.serialization import to_bytes
from tests.support.google_storage import TOKEN, GoogleServer, google_server, key_file

TABLE = pa.table({"id": range(1000), "s": [f"t{i % 7}" for i in range(1000)]})


def rows(ctx: kq.ExecutionContext, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in ctx.sql(sql).collect()]


def written(write: Any, table: pa.Table = TABLE) -> bytes:
    sink = io.BytesIO()
    write(table, sink)
    return sink.getvalue()


@pytest.fixture(scope="module")
def server() -> Iterator[GoogleServer]:
    """A bucket with the same rows in each format, some in directories that are partitions."""
    with google_server() as server:
        for year in (2019, 2020):
            for part in range(3):
                server.put("data", f"a b/year={year}/part-{part}.parquet", written(pq.write_table))
        server.put("data", "rows.csv", written(pa_csv.write_csv))
        server.put("data", "rows.orc", written(orc.write_table))
        server.put("data", "rows.json", "\n".join(map(json.dumps, TABLE.to_pylist())).encode())
        yield server


@pytest.fixture
def options(server: GoogleServer) -> dict[str, Any]:
    return {"token": "anon", "endpoint_url": server.endpoint}


def test_parquet_files_their_partitions_and_globs(options):
    ctx = kq.ExecutionContext()
    ctx.register_parquet("t", "gs://data/a b", storage_options=options)
    sql = "SELECT year, s, count(*) AS n, max(id) AS m FROM t WHERE id < 700 GROUP BY year, s ORDER BY 1, 2"
    assert rows(ctx, sql)[0] == (2019, "t0", 300, 693)
    assert rows(ctx, "SELECT count(*) FROM t") == [(6000,)]
    ctx.register_parquet("some", "gs://data/a b/year=20*/part-[01].parquet", storage_options=options)
    assert rows(ctx, "SELECT count(*) FROM some") == [(4000,)]


@pytest.mark.parametrize("name", ["csv", "json", "orc"])
def test_other_formats(options, name):
    ctx = kq.ExecutionContext()
    getattr(ctx, f"register_{name}")("t", f"gs://data/rows.{name}", storage_options=options)
    assert rows(ctx, "SELECT count(*), sum(id), min(s) FROM t") == [(1000, 499500, "t0")]


def test_an_object_that_was_replaced_or_removed_is_an_error(server, options):
    server.put("data", "replaced.parquet", written(pq.write_table))
    ctx = kq.ExecutionContext()
    ctx.register_parquet("t", "gs://data/replaced.parquet", storage_options=options)
    assert rows(ctx, "SELECT sum(id) FROM t") == [(499500,)]
    server.put("data", "replaced.parquet", written(pq.write_table, TABLE.slice(0, 10)))
    with pytest.raises(KQueryError, match=r"replaced\.parquet has changed since the query was planned"):
        rows(ctx, "SELECT sum(id) FROM t")
    server.delete("data", "replaced.parquet")
    with pytest.raises(KQueryError, match=r"replaced\.parquet (has changed|does not exist)"):
        rows(ctx, "SELECT max(id) FROM t")


def test_a_missing_bucket_is_named(options):
    with pytest.raises(KQueryError, match="no-such-bucket"):
        kq.ExecutionContext().register_parquet("t", "gs://no-such-bucket/x", storage_options=options)


def test_a_key_file_and_an_access_token_are_what_the_server_wants(server, options, tmp_path, monkeypatch):
    monkeypatch.delenv(CREDENTIALS_VARIABLE, raising=False)
    file = key_file(tmp_path)
    server.put("private-data", "t.parquet", written(pq.write_table))
    path = "gs://private-data/t.parquet"
    for given in ({"google_service_account": file}, {"token": file}, {"access_token": TOKEN}):
        ctx = kq.ExecutionContext()
        ctx.register_parquet("t", path, storage_options={"endpoint_url": server.endpoint, **given})
        assert rows(ctx, "SELECT count(*), sum(id) FROM t") == [(1000, 499500)]
        assert TOKEN not in ctx.sql("SELECT sum(id) FROM t").explain()
    with pytest.raises(KQueryError, match=path):
        kq.ExecutionContext().register_parquet("t", path, storage_options=options)
    assert CREDENTIALS_VARIABLE not in os.environ


def test_no_credentials_are_an_error_at_once(monkeypatch, tmp_path):
    monkeypatch.delenv(CREDENTIALS_VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GCE_METADATA_HOST", "no-such-host.invalid")
    with pytest.raises(KQueryError, match="no credentials for Google Cloud: GOOGLE_APPLICATION_CREDENTIALS"):
        kq.ExecutionContext().register_parquet("t", "gs://bucket-without-credentials/x")


def test_wrong_options_are_named(tmp_path):
    for wrong in ({"google_bucket": "x"}, {"token": str(tmp_path / "none")}):
        with pytest.raises(ConfigError, match=r"google_bucket; there are access_token|token must be 'anon'"):
            store_of_options("gs://b/x", wrong)
    missing = {"google_service_account": str(tmp_path / "none")}
    with pytest.raises(KQueryError, match=r"the credentials file .* does not exist"):
        kq.ExecutionContext().register_parquet("t", "gs://b-of-no-file/x", storage_options=missing)


def test_secrets_are_not_shown_and_plans_say_which_buckets_they_read(options):
    store = GoogleStore("b", (("access_token", TOKEN),))
    assert TOKEN not in repr(store)
    assert without_secrets(f"with {TOKEN}", store) == "with (hidden)"
    kq.ExecutionContext().register_parquet("t", "gs://data/a b", storage_options=options)
    data = to_bytes(parquet_source(["gs://data/a b"]))
    assert [(type(store), store.bucket) for store in stores_named_in(data)] == [(GoogleStore, "data")]


def test_an_endpoint_is_the_same_however_it_is_written():
    one = store_of_options("gs://b/x", {"endpoint_url": "http://h:1/", "google_skip_signature": "true"})
    other = store_of_options("gs://b/x", {"endpoint_override": "h:1", "scheme": "http", "anonymous": True})
    assert one == other and one.stamp == other.stamp != GoogleStore("b").stamp


def test_objects_that_the_store_keeps_compressed_are_refused(server, options):
    server.put("data", "kept.csv", gzip.compress(written(pa_csv.write_csv)), encoding="gzip")
    server.put("data", "own.csv.gz", gzip.compress(written(pa_csv.write_csv)))
    ctx = kq.ExecutionContext()
    ctx.register_csv("own", "gs://data/own.csv.gz", header=True, storage_options=options)
    assert rows(ctx, "SELECT count(*), max(id) FROM own") == [(1000, 999)]
    with pytest.raises(KQueryError, match=r"gs://data/kept\.csv: the store keeps it compressed"):
        ctx.register_csv("kept", "gs://data/kept.csv", header=True, storage_options=options)
        ctx.sql("SELECT count(*), max(id) FROM kept").collect()
