"""Clients that read one batch of a large result and no more: what the service holds for all of them together is bounded."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import flight

import kquery_spark as kq
from kquery_spark.service import ServiceLimits
from kquery_spark.service.answers import Answers, Query
from kquery_spark.service.requests import SqlRequest
from tests.service.server_process import Server, running_server

ROWS = 20_000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "k": pa.array([i % 10 for i in range(ROWS)], pa.int64()),
        "price": pa.array([i / 8 for i in range(ROWS)]),
    }
)
EXPLODING_JOIN = (
    "SELECT a.id, b.id AS other, a.k, b.price FROM {0} a JOIN {0} b ON a.k = b.k"  # 40 million rows
)
READERS = 6
MIB = 1 << 20


def eventually(condition: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@contextlib.contextmanager
def slow_readers(
    location: str, count: int, query: str, options: flight.FlightCallOptions | None = None
) -> Iterator[None]:
    """Clients that have read one batch each."""
    with contextlib.ExitStack() as closed:
        for _ in range(count):
            client = closed.enter_context(flight.FlightClient(location))
            reader = client.do_get(flight.Ticket(query.encode()), options or flight.FlightCallOptions())
            closed.callback(reader.cancel)
            assert reader.read_chunk().data.num_rows
        yield


@contextlib.contextmanager
def small_service(limits: ServiceLimits) -> Iterator[kq.QueryService]:
    context = kq.ExecutionContext()
    context.register_arrow("big", TABLE)
    with kq.QueryService(context, limits=limits) as service:
        yield service


def test_slow_readers_share_a_budget_and_keep_it_from_no_other_query():
    limits = ServiceLimits(read_ahead_bytes=32 * MIB)
    before = pa.total_allocated_bytes()
    with small_service(limits) as service:
        location = f"grpc://127.0.0.1:{service.port}"
        with slow_readers(location, READERS, EXPLODING_JOIN.format("big")):
            time.sleep(1)
            assert service._answers.running == READERS
            # of each reader one batch of 4 MiB beside the budget, in the engine and in gRPC
            assert pa.total_allocated_bytes() - before < limits.read_ahead_bytes + READERS * 12 * MIB
            with flight.FlightClient(location) as client:
                result = client.do_get(flight.Ticket(b"SELECT sum(id) AS s FROM big")).read_all()
            assert result["s"].to_pylist() == [sum(range(ROWS))]
        assert eventually(lambda: service._answers.running == 0)
        assert service._answers.budget.held == 0
        assert eventually(lambda: pa.total_allocated_bytes() - before < 2 * MIB)


def test_a_closed_result_holds_nothing_once_its_slot_is_free():
    context = kq.ExecutionContext()
    context.register_arrow("big", TABLE)
    answers = Answers(ServiceLimits(read_ahead_bytes=32 * MIB))
    query = Query(lambda: False)
    reader = SqlRequest(EXPLODING_JOIN.format("big")).answer(context, query.stop, answers.budget)
    batches = answers.stream(reader, query)
    assert next(batches).num_rows
    assert answers.budget.held > 0
    batches.close()
    assert (answers.running, answers.budget.held) == (0, 0), "even while the reader is referenced"


def test_a_reader_that_takes_nothing_for_too_long_holds_nothing():
    limits = ServiceLimits(read_ahead_bytes=256 * MIB, unread_seconds=1)
    with small_service(limits) as service:
        location = f"grpc://127.0.0.1:{service.port}"
        with slow_readers(location, 1, EXPLODING_JOIN.format("big")):
            assert eventually(lambda: service._answers.budget.held > 8 * MIB)
            assert eventually(lambda: service._answers.budget.held == 0)
            assert service._answers.running == 1, "gRPC still waits for the client"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    pq.write_table(TABLE, tmp_path / "big.parquet")
    with running_server("--table", f"big={tmp_path / 'big.parquet'}", "--read-ahead-mib", "64") as server:
        assert server.answers()
        yield server


def test_memory_is_bounded_while_readers_wait_and_returned_after_they_left(server: Server):
    before = server.status("VmRSS")
    with slow_readers(server.location, READERS, EXPLODING_JOIN.format("big"), server.options(120)):
        time.sleep(1)
        assert server.status("VmRSS") - before < 330 << 10, "KiB"
    assert eventually(lambda: server.status("VmRSS") - before < 60 << 10), server.status("VmRSS") - before
    assert server.answers()
