"""Containers of Azure: options, paths, and, where Azurite is installed, a context without Spark that reads from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import ConfigError, KQueryError
from kquery_spark.sources.object_stores.azure import AzureStore
from kquery_spark.sources.object_stores.connections import connect, reach, store_of_options
from kquery_spark.sources.object_stores.store import without_secrets
from tests.support.azure_storage import (
    ACCOUNT,
    HOST,
    KEY,
    azure_server,
    new_container,
    shared_access_signature,
    storage_options,
)

TABLE = pa.table({"id": range(1000), "s": [f"t{i % 7}" for i in range(1000)]})


def rows(ctx: kq.ExecutionContext, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in ctx.sql(sql).collect()]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with azure_server() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def filesystem(server: str) -> Any:
    fs = new_container(server, "data")
    for year in (2019, 2020):
        # as Hadoop marks a directory
        for path in ("data/a b", f"data/a b/year={year}"):
            fs.open_output_stream(path).close()
        for part in range(3):
            with fs.open_output_stream(f"data/a b/year={year}/part-{part}.parquet") as file:
                pq.write_table(TABLE, file)
    with fs.open_output_stream("data/rows.csv") as file:
        pa_csv.write_csv(TABLE, file)
    return fs


@pytest.mark.parametrize("path", [f"abfss://data@{HOST}", f"abfs://data@{HOST}", "az://data"])
def test_partitions_globs_and_text(server, filesystem, path):
    options = storage_options(server)
    ctx = kq.ExecutionContext()
    ctx.register_parquet("t", f"{path}/a b", storage_options=options)
    assert rows(ctx, "SELECT year, count(*), sum(id) FROM t GROUP BY year ORDER BY 1") == [
        (2019, 3000, 1498500),
        (2020, 3000, 1498500),
    ]
    assert KEY not in ctx.sql("SELECT sum(id) FROM t").explain()
    ctx.register_parquet("some", f"{path}/a b/year=20*/part-[01].parquet", storage_options=options)
    assert rows(ctx, "SELECT count(*) FROM some") == [(4000,)]
    ctx.register_csv("c", f"{path}/rows.csv", storage_options=options)
    assert rows(ctx, "SELECT count(*), sum(id) FROM c") == [(1000, 499500)]


def test_a_replaced_file_and_a_missing_container_are_errors(server, filesystem):
    def write(table: pa.Table) -> None:
        with filesystem.open_output_stream("data/replaced.parquet") as file:
            pq.write_table(table, file)

    write(TABLE)
    ctx = kq.ExecutionContext()
    options = storage_options(server)
    ctx.register_parquet("t", f"abfss://data@{HOST}/replaced.parquet", storage_options=options)
    assert rows(ctx, "SELECT sum(id) FROM t") == [(499500,)]
    write(TABLE.slice(0, 10))
    with pytest.raises(KQueryError, match=r"replaced\.parquet has changed since the query was planned"):
        rows(ctx, "SELECT sum(id) FROM t")
    with pytest.raises(KQueryError, match="no-such-container"):
        ctx.register_parquet("t", f"abfss://no-such-container@{HOST}/x", storage_options=options)


@pytest.mark.skipif(int(pa.__version__.split(".")[0]) < 20, reason="pyarrow has no such option")
@pytest.mark.parametrize("start", ["", "?"])
def test_a_shared_access_signature(server, filesystem, start):
    token = shared_access_signature()
    options = {"azure_storage_sas_token": f"{start}{token}", "azure_endpoint": server}
    ctx = kq.ExecutionContext()
    ctx.register_parquet("t", f"abfss://data@{HOST}/a b", storage_options=options)
    assert rows(ctx, "SELECT count(*), sum(id) FROM t") == [(6000, 2997000)]
    assert token not in ctx.sql("SELECT sum(id) FROM t").explain()
    wrong = {**options, "azure_storage_sas_token": token.replace("sig=", "sig=a")}
    with pytest.raises(KQueryError) as raised:
        ctx.register_parquet("t", f"abfss://data@{HOST}/a b", storage_options=wrong)
    assert "sig=a" not in str(raised.value)


def test_options_by_the_names_of_other_libraries():
    one = store_of_options(
        f"abfss://c@{HOST}/x", {"azure_storage_access_key": KEY, "endpoint": "http://h:1/"}
    )
    other = store_of_options(
        f"abfs://c@{HOST}/x",
        {
            "account_name": ACCOUNT,
            "account_key": KEY,
            **dict.fromkeys(("blob_storage_authority", "dfs_storage_authority"), "h:1"),
            **dict.fromkeys(("blob_storage_scheme", "dfs_storage_scheme"), "http"),
        },
    )
    assert one == other and one.stamp == other.stamp != AzureStore(f"c@{HOST}").stamp
    emulator = dict(store_of_options("az://c/x", {"use_emulator": "true"}).options)
    assert emulator["account_key"] == KEY and emulator["blob_storage_authority"] == "127.0.0.1:10000"
    with pytest.raises(ConfigError, match=r"storage_options have no azure_key; there are account_key, "):
        store_of_options("az://c/x", {"azure_key": KEY})
    with pytest.raises(ConfigError, match=f"not the account {ACCOUNT}"):
        store_of_options(f"abfss://c@{HOST}/x", {"account_name": "another"})
    with pytest.raises(KQueryError, match="storage option account_name"):
        kq.ExecutionContext().register_parquet("t", "az://container-without-account/x")


def test_secrets_are_not_shown():
    store = AzureStore(f"c@{HOST}", (("account_key", KEY), ("sas_token", "sig=a-signature")))
    assert KEY not in repr(store)
    assert without_secrets(f"{KEY} sig=a-signature", store) == "(hidden) (hidden)"


@pytest.mark.parametrize(
    ("path", "inner"),
    [
        (f"abfss://c@{HOST}/k/x y%20z", "c/k/x y%20z"),
        (f"abfs://c@{HOST}/", "c"),
        (f"abfss://c@{HOST}", "c"),
        ("abfss://c@a.dfs.core.chinacloudapi.cn/k", "c/k"),
    ],
)
@pytest.mark.skipif(not hasattr(pafs, "AzureFileSystem"), reason="pyarrow has no filesystem of Azure's")
def test_paths_are_taken_as_they_are(path, inner):
    connect([store_of_options(path, {"account_key": KEY})])
    reached = reach(path)
    assert reached is not None and reached[1] == inner
