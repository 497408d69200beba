"""Substrait plans over Flight SQL, as ADBC sends them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from adbc_driver_flightsql import dbapi
from pyarrow import flight

import kquery_spark as kq
from kquery_spark.service import flight_sql_pb2 as pb
from kquery_spark.service.requests import packed
from tests.service.conftest import EMPLOYEES

pytest.importorskip("substrait")


@pytest.fixture
def connection(place: str) -> Iterator[dbapi.Connection]:
    with dbapi.connect(place, autocommit=True) as connection:
        yield connection


def plan_of(context: kq.ExecutionContext, sql: str) -> bytes:
    return context.sql(sql).to_substrait()


def test_a_plan_through_adbc(connection, context):
    plan = plan_of(
        context, "SELECT name, sum(salary) AS s FROM employee JOIN states ON state = code GROUP BY name"
    )
    with connection.cursor() as cursor:
        cursor.execute(plan)
        table = cursor.fetch_arrow_table()
    assert sorted(table.to_pylist(), key=str) == [
        {"name": "California", "s": 12000},
        {"name": "Colorado", "s": 21500},
    ]
    assert table.schema.names == ["name", "s"]


def test_a_plan_that_another_context_wrote(connection):
    other = kq.ExecutionContext()
    other.register_arrow("employee", EMPLOYEES)
    with connection.cursor() as cursor:
        cursor.execute(plan_of(other, "SELECT id FROM employee WHERE salary > 11000 ORDER BY id DESC"))
        assert cursor.fetchall() == [(4,), (3,), (1,)]


def test_a_client_context_runs_plans_over_the_tables_of_the_service(place, context):
    plan = plan_of(context, "SELECT id, name FROM employee JOIN states ON state = code WHERE salary > 11000")
    with kq.connect(place) as remote:
        frame = kq.plan_from_substrait(plan, remote)
        assert sorted(frame.to_arrow().to_pylist(), key=str) == [
            {"id": 1, "name": "California"},
            {"id": 3, "name": "Colorado"},
        ]
        assert remote.sql("SELECT id FROM employee").to_substrait()


def test_plans_must_not_read_files_of_the_service(connection, tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "secret.parquet"
    pq.write_table(EMPLOYEES, path)
    other = kq.ExecutionContext()
    other.register_parquet("employee", str(path))
    frame = other.table("employee")
    other.register_arrow("employee", EMPLOYEES)
    plan = frame.to_substrait()
    assert b"secret.parquet" in plan
    with connection.cursor() as cursor, pytest.raises(dbapi.Error, match="must not read files"):
        cursor.execute(plan)


@pytest.mark.parametrize(
    ("plan", "message"),
    [(b"\xff\xff\xff", "not a Substrait plan"), (b"\x32\x00", "0 relations")],
)
def test_what_is_not_a_plan_is_refused(plan, message, connection):
    with connection.cursor() as cursor, pytest.raises(dbapi.Error, match=message):
        cursor.execute(plan)


def test_an_unknown_table_is_named(connection):
    other = kq.ExecutionContext()
    other.register_arrow("employes", EMPLOYEES)
    with (
        connection.cursor() as cursor,
        pytest.raises(dbapi.Error, match=r"unknown table employes \(did you mean employee\?\)"),
    ):
        cursor.execute(plan_of(other, "SELECT id FROM employes"))


def test_the_service_says_that_it_takes_plans(client):
    command = packed("CommandGetSqlInfo", pb.CommandGetSqlInfo(info=[5]))
    info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
    assert client.do_get(info.endpoints[0].ticket).read_all().to_pylist() == [{"info_name": 5, "value": True}]
