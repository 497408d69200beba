"""Clients that mean no good, that are slow, that go away, and many at once."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight

import kquery_spark as kq
from kquery_spark.service import ServiceLimits
from tests.service.conftest import EMPLOYEES
from tests.service.hostile import Attack
from tests.service.server_process import Server, running_server

LONG_QUERY = b"SELECT sum(a.id * b.id) FROM range(3000000) a CROSS JOIN range(1000000) b"
MANY_ROWS = b"SELECT a.id, b.id AS b FROM range(100000) a CROSS JOIN range(100000) b"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server("--max-queries", "8") as server:
        yield server


def eventually(condition: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def engine_threads() -> int:
    return sum(t.name.startswith("kquery-task") for t in threading.enumerate())


def cpu_share() -> float:
    """How much of one core this process uses."""
    wall, cpu = time.monotonic(), time.process_time()
    time.sleep(0.5)
    return (time.process_time() - cpu) / (time.monotonic() - wall)


def read_until_it_fails(reader: flight.FlightStreamReader) -> None:
    with contextlib.suppress(pa.ArrowException):
        for _ in reader:  # read_all would raise KeyboardInterrupt in the main thread when it is cancelled
            pass


def small_context() -> kq.ExecutionContext:
    context = kq.ExecutionContext()
    context.register_arrow("employee", EMPLOYEES)
    return context


@pytest.mark.parametrize("seed", [21, 22])
def test_mutated_requests_are_refused_and_the_service_lives(server: Server, seed: int):
    report = Attack(server, seed).send(400, check_every=100)
    assert not report.findings, report
    assert report.outcomes["refused"] > 100 and report.outcomes["answered"] > 20


def test_two_hundred_clients_at_once(server: Server):
    def count_items(number: int) -> int:
        with flight.FlightClient(server.location) as client:
            ticket = flight.Ticket(f"SELECT {number} + count(*) AS n FROM items".encode())
            return int(client.do_get(ticket, server.options(120)).read_all()["n"][0].as_py())

    with ThreadPoolExecutor(200) as pool:
        assert list(pool.map(count_items, range(200))) == [1000 + n for n in range(200)]


def test_rows_are_not_taken_however_many_they_are(server: Server):
    before = server.status("VmRSS")
    table = pa.table({"x": np.zeros(8 << 20, np.int64)})  # 64 MiB
    with flight.FlightClient(server.location) as client:
        descriptor = flight.FlightDescriptor.for_path("new")
        writer, _ = client.do_put(descriptor, table.schema, server.options(120))
        with pytest.raises((flight.FlightServerError, pa.ArrowException), match="uploads and query"):
            for _ in range(32):  # 2 GiB
                writer.write_table(table, max_chunksize=1 << 17)
            writer.close()
    assert server.status("VmHWM") - before < 700 << 10, "KiB"
    assert server.answers()


def test_clients_that_do_not_read_block_no_other_client():
    limits = ServiceLimits(running_queries=2, unread_seconds=1, waiting_seconds=60)
    with kq.QueryService(small_context(), limits=limits) as service, contextlib.ExitStack() as closed:
        place = f"grpc://127.0.0.1:{service.port}"
        readers = []
        for _ in range(4):
            client = closed.enter_context(flight.FlightClient(place))
            readers.append(client.do_get(flight.Ticket(MANY_ROWS)))
            closed.callback(readers[-1].cancel)
        assert eventually(lambda: service._answers.running >= 2)
        with flight.FlightClient(place) as client:
            answer = client.do_get(flight.Ticket(b"SELECT count(*) AS n FROM employee")).read_all()
        assert answer.to_pydict() == {"n": [4]}
        assert eventually(lambda: cpu_share() < 0.5), "the queries of slow clients do not work on"
        with pytest.raises(flight.FlightServerError, match="read no rows for 1 s"):
            readers[0].read_all()
        for reader in readers:
            reader.cancel()
        assert eventually(lambda: service._answers.running == 0)


@pytest.mark.parametrize("query", [LONG_QUERY, MANY_ROWS])
def test_a_client_that_goes_away_ends_its_query(query: bytes):
    with kq.QueryService(small_context()) as service:
        client = flight.FlightClient(f"grpc://127.0.0.1:{service.port}")
        reader = client.do_get(flight.Ticket(query))
        reading = threading.Thread(target=read_until_it_fails, args=(reader,))
        reading.start()
        assert eventually(lambda: service._answers.running == 1)
        time.sleep(0.5)
        reader.cancel()
        reading.join(30)
        assert eventually(lambda: service._answers.running == 0), "the query ended"
        assert eventually(lambda: engine_threads() == 0), "and so did its threads"
        client.close()


def test_a_query_that_takes_too_long_is_stopped():
    limits = ServiceLimits(query_seconds=1)
    with (
        kq.QueryService(small_context(), limits=limits) as service,
        kq.connect(f"grpc://127.0.0.1:{service.port}") as remote,
    ):
        for query in (LONG_QUERY, MANY_ROWS):
            with pytest.raises(kq.errors.ExecutionError, match=r"OPERATION_CANCELED.*more than 1 s"):
                for _ in remote.sql(query.decode()).to_reader():
                    pass
        assert eventually(lambda: engine_threads() == 0)


def test_queries_wait_for_a_place_and_are_refused_after_a_while():
    limits = ServiceLimits(running_queries=1, waiting_seconds=1)
    with kq.QueryService(small_context(), limits=limits) as service:
        place = f"grpc://127.0.0.1:{service.port}"
        with flight.FlightClient(place) as first, flight.FlightClient(place) as second:
            reader = first.do_get(flight.Ticket(MANY_ROWS))
            assert eventually(lambda: service._answers.running == 1)
            with pytest.raises(flight.FlightServerError, match="runs 1 queries already"):
                second.do_get(flight.Ticket(b"SELECT 1")).read_all()
            reader.cancel()
            assert eventually(lambda: service._answers.running == 0)
            assert second.do_get(flight.Ticket(b"SELECT 1 AS x")).read_all().to_pydict() == {"x": [1]}


def test_a_request_that_is_too_large_is_refused():
    long = b"SELECT '" + b"x" * 1000 + b"'"
    with (
        kq.QueryService(small_context(), limits=ServiceLimits(request_bytes=1000)) as service,
        flight.FlightClient(f"grpc://127.0.0.1:{service.port}") as client,
    ):
        for call in (
            lambda: client.do_get(flight.Ticket(long)).read_all(),
            lambda: client.get_flight_info(flight.FlightDescriptor.for_command(long)),
            lambda: list(client.do_action(flight.Action("explain", long))),
        ):
            with pytest.raises(flight.FlightServerError, match="too large"):
                call()


def test_limits_have_to_be_positive():
    for wrong in ({"running_queries": 0}, {"unread_seconds": 0}, {"query_seconds": -1}, {"request_bytes": 0}):
        with pytest.raises(kq.errors.ConfigError, match="positive"):
            ServiceLimits(**wrong)


@pytest.mark.parametrize(
    "sql",
    ["SELECT " + "(" * 50_000, "SELECT '" + "\u00fc" * 50_000, "SELECT " + "\u2028" * 9000, "x" * 200_000],
    ids=["nested", "open", "odd", "long"],
)
def test_errors_of_long_strings_arrive(client: flight.FlightClient, sql: str):
    with pytest.raises(flight.FlightServerError) as raised:
        client.do_get(flight.Ticket(sql.encode())).read_all()
    assert raised.value.extra_info and b"SqlError" in raised.value.extra_info


def test_errors_do_not_show_the_credentials_of_a_path(
    client: flight.FlightClient, monkeypatch: pytest.MonkeyPatch
):
    def broken(self: object, text: str) -> None:
        raise kq.errors.SourceError("cannot read s3a://K:S@b/t")

    monkeypatch.setattr(kq.ExecutionContext, "sql", broken)
    with pytest.raises(flight.FlightServerError, match=r"s3a://\*\*\*@b/t") as raised:
        client.do_get(flight.Ticket(b"SELECT 1"))
    assert "K:S" not in str(raised.value) and b"K:S" not in raised.value.extra_info


def test_unexpected_errors_reveal_no_internals(
    client: flight.FlightClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def broken(self: object, text: str) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(kq.ExecutionContext, "sql", broken)
    for call in (
        lambda: client.do_get(flight.Ticket(b"SELECT 1")).read_all(),
        lambda: client.get_flight_info(flight.FlightDescriptor.for_command(b"SELECT 1")),
        lambda: list(client.do_action(flight.Action("explain", b"SELECT 1"))),
    ):
        with pytest.raises(
            flight.FlightServerError, match="the service failed: ZeroDivisionError: oh"
        ) as raised:
            call()
        assert "Traceback" not in str(raised.value) and ".py" not in str(raised.value)
    assert "ZeroDivisionError" in caplog.text, "whoever runs the service finds it in the log"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM parquet.`/etc/passwd`", "SELECT * FROM csv.`/etc/passwd`", "SELECT * FROM text.`/etc/passwd`",
        "SELECT * FROM `/etc/passwd`", "SELECT * FROM read_files('/etc/passwd')", "CREATE TABLE x AS SELECT 1",
        "CREATE TEMP VIEW x USING csv OPTIONS (path '/etc/passwd')", "INSERT INTO employee VALUES (1, 'x', 2)",
        "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1", "DROP TABLE employee", "SET spark.sql.ansi.enabled=false",
        "ADD JAR 'http://127.0.0.1/x.jar'", "SELECT reflect('java.lang.System', 'exit', 1)", "LOAD DATA INPATH 'x' INTO TABLE y",
        "SELECT java_method('java.lang.System', 'exit', 1)", "SELECT input_file_name()", "SELECT * FROM VALUES (1) x; DROP TABLE employee",
    ],
)  # fmt: skip
def test_sql_names_no_files_and_changes_nothing(client: flight.FlightClient, sql: str):
    with pytest.raises(flight.FlightServerError) as raised:
        client.do_get(flight.Ticket(sql.encode())).read_all()
    assert "root:" not in str(raised.value) and "the service failed" not in str(raised.value)
