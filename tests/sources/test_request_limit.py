"""Requests to object stores that trickle, hang or are cut end within a limit that users set."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import DEFAULT_REQUEST_SECONDS, EngineConfig
from kquery_spark.errors import KQueryError, SourceError
from kquery_spark.sources.deletes.position_deletes import PositionDeletes
from kquery_spark.sources.object_stores.connections import connect, store_of_options
from kquery_spark.sources.request_limit import limit_requests, within_limit
from tests.sources.slow_store import slow_store

ROWS = 20_000
TABLE = pa.table({"id": np.arange(ROWS), "d": np.random.default_rng(1).random(ROWS)})
WRITERS: dict[str, Callable[[pa.Table, io.BytesIO], None]] = {
    "csv": pa_csv.write_csv,
    "orc": orc.write_table,
    "parquet": pq.write_table,
}


@pytest.fixture(autouse=True)
def default_limit() -> Iterator[None]:
    yield
    limit_requests(DEFAULT_REQUEST_SECONDS)


@pytest.mark.parametrize("name", WRITERS)
def test_a_server_that_trickles_is_an_error_within_the_limit(name: str):
    file = io.BytesIO()
    WRITERS[name](TABLE, file)
    ctx = kq.ExecutionContext(config=EngineConfig(request_seconds=3))
    with slow_store(file.getvalue()) as store:
        path = f"s3://slow/t.{name}"
        getattr(ctx, f"register_{name}")("t", path, storage_options=store.options)
        store.fault = "trickle"
        start = time.monotonic()
        with pytest.raises(
            KQueryError, match=rf"{path} took longer than 3 seconds.*spark\.kquery\.requestSeconds"
        ):
            ctx.sql("SELECT sum(d) FROM t").collect()
        assert time.monotonic() - start < 15
        store.fault = None
        assert ctx.sql("SELECT count(d) AS n FROM t").collect() == [{"n": ROWS}]


def test_a_position_delete_file_that_trickles_is_an_error_within_the_limit():
    file = io.BytesIO()
    pq.write_table(pa.table({"file_path": ["a"] * ROWS, "pos": np.arange(ROWS)}), file)
    deletes = PositionDeletes("a", ("s3://trickling/deletes.parquet",))
    limit_requests(2)
    with slow_store(file.getvalue()) as store:
        connect([store_of_options(deletes.paths[0], store.options)])
        store.fault = "trickle"
        start = time.monotonic()
        with pytest.raises(SourceError, match=r"deletes\.parquet took longer than 2 seconds"):
            deletes.positions()
        assert time.monotonic() - start < 15
        store.fault = None
        assert len(deletes.positions()) == ROWS


def test_connections_that_are_cut_are_an_error_that_names_the_object():
    file = io.BytesIO()
    orc.write_table(TABLE, file)
    ctx = kq.ExecutionContext(config=EngineConfig(request_seconds=2))
    with slow_store(file.getvalue()) as store:
        ctx.register_orc("t", "s3://cut/t.orc", storage_options=store.options)
        store.fault = "cut"
        start = time.monotonic()
        with pytest.raises(KQueryError, match=r"s3://cut/t\.orc") as raised:
            ctx.sql("SELECT sum(d) FROM t").collect()
        assert time.monotonic() - start < 15
        assert "Traceback" not in str(raised.value)


def test_errors_of_a_request_are_raised_as_they_are():
    def fails() -> None:
        raise FileNotFoundError("gone")

    with pytest.raises(FileNotFoundError, match="gone"):
        within_limit("s3://b/k", fails)
    with pytest.raises(TimeoutError, match="of the server"):
        within_limit("s3://b/k", lambda: (_ for _ in ()).throw(TimeoutError("of the server")))


def test_a_limit_of_0_is_none():
    limit_requests(0)
    assert within_limit("s3://b/k", lambda: 7) == 7


def test_the_setting_reaches_the_process_that_plans_and_those_that_read(spark, tmp_path):
    from kquery_spark import kquery_plan
    from tests.conftest import settings

    spark.range(1000).write.parquet(str(tmp_path / "t"))
    with settings(spark, {"spark.kquery.requestSeconds": "7"}):
        fast = spark.read.parquet(str(tmp_path / "t")).transform(kquery_plan, when="always", fallback="error")
        assert fast.count() == 1000
    from kquery_spark.sources import request_limit

    assert request_limit._seconds == 7
    assert issubclass(SourceError, KQueryError)
