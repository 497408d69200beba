"""Clients that know Arrow Flight and nothing of us."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import flight

import kquery_spark as kq
from tests.service.conftest import EMPLOYEES


def ask(client: flight.FlightClient, command: str) -> pa.Table:
    info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
    table = client.do_get(info.endpoints[0].ticket).read_all()
    assert table.schema.equals(info.schema), "the columns are those that were announced"
    return table


def test_sql_is_answered_with_record_batches(client: flight.FlightClient):
    sql = "SELECT state, max(salary) AS top FROM employee GROUP BY state ORDER BY state NULLS LAST"
    answer = ask(client, sql)
    assert answer.to_pydict() == {"state": ["CA", "CO", None], "top": [12000, 11500, 11500]}
    assert client.get_schema(flight.FlightDescriptor.for_command(sql)).schema.equals(answer.schema)
    # a ticket may be SQL itself
    assert client.do_get(flight.Ticket(sql.encode())).read_all().equals(answer)


def test_nullability_and_names_are_those_of_the_query(client: flight.FlightClient):
    answer = ask(client, "SELECT id, salary, id FROM employee")
    assert answer.schema.names == ["id", "salary", "id"]
    assert [f.nullable for f in answer.schema] == [False, True, False]


def test_tables_are_listed_and_read_by_name(client: flight.FlightClient):
    infos = {i.descriptor.path[0].decode(): i for i in client.list_flights()}
    assert list(infos) == ["employee", "states"]
    assert infos["employee"].schema.equals(EMPLOYEES.schema)
    assert client.do_get(infos["employee"].endpoints[0].ticket).read_all().equals(EMPLOYEES)
    flight_info = client.get_flight_info(flight.FlightDescriptor.for_path("states"))
    assert client.do_get(flight_info.endpoints[0].ticket).read_all().num_rows == 2


def test_a_large_answer_comes_in_many_batches(client: flight.FlightClient):
    reader = client.do_get(flight.Ticket(b"SELECT id FROM range(1000000)"))
    count = total = 0
    for chunk in reader:
        count += 1
        total += chunk.data.num_rows
    assert total == 1_000_000 and count > 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (b"SELECT nothing FROM employee", "nothing"),
        (b"SELECT * FROM absent", "employee, states"),
        (b"SELEC 1", "line 1, column 1"),
        (b"\xff\xfe", "SQL in UTF-8"),
        (b"\n7type.googleapis.com/arrow.flight.protocol.sql.CommandOdd", "CommandOdd"),
    ],
)
def test_what_cannot_be_answered_is_said_before_anything_runs(
    client: flight.FlightClient, command: bytes, said: str
):
    with pytest.raises(flight.FlightServerError, match=said):
        client.get_flight_info(flight.FlightDescriptor.for_command(command))


def test_an_error_of_the_data_reaches_the_client(client: flight.FlightClient):
    with pytest.raises(flight.FlightServerError, match=r"\[DIVIDE_BY_ZERO\]"):
        client.do_get(flight.Ticket(b"SELECT salary / (id - 1) FROM employee")).read_all()


def test_a_path_names_one_table(client: flight.FlightClient):
    with pytest.raises(flight.FlightServerError, match="name of one table"):
        client.get_flight_info(flight.FlightDescriptor.for_path("a", "b"))
    with pytest.raises(flight.FlightServerError, match="`; DROP"):
        client.get_flight_info(flight.FlightDescriptor.for_path("t`; DROP"))


def test_nothing_can_be_put(client: flight.FlightClient):
    writer, _ = client.do_put(flight.FlightDescriptor.for_path("new"), EMPLOYEES.schema)
    with pytest.raises(flight.FlightServerError, match="uploads and query parameters are not supported"):
        writer.write_table(EMPLOYEES)
        writer.close()


def test_actions_are_listed_and_unknown_ones_refused(client: flight.FlightClient):
    assert {"session", "explain"} <= {a.type for a in client.list_actions()}
    (text,) = client.do_action(flight.Action("explain", b"SELECT max(id) FROM employee"))
    assert "AggregateExec: single" in text.body.to_pybytes().decode()
    with pytest.raises(flight.FlightServerError, match="unknown action Fly"):
        list(client.do_action(flight.Action("Fly", b"")))


def test_clients_must_send_the_token(context: kq.ExecutionContext):
    with (
        kq.QueryService(context, token="secret") as service,
        flight.FlightClient(f"grpc://127.0.0.1:{service.port}") as client,
    ):
        for headers in ([], [(b"authorization", b"Bearer wrong")]):
            with pytest.raises(flight.FlightUnauthenticatedError, match="token"):
                list(client.list_flights(options=flight.FlightCallOptions(headers=headers)))
        right = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer secret")])
        assert len(list(client.list_flights(options=right))) == 2


def test_many_clients_at_once_get_their_own_answers(place: str):
    from concurrent.futures import ThreadPoolExecutor

    def ask_for_sum(number: int) -> int:
        with flight.FlightClient(place) as client:
            return int(ask(client, f"SELECT {number} + sum(id) AS s FROM employee")["s"][0].as_py())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask_for_sum, range(24))) == [10 + n for n in range(24)]
