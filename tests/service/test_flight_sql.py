"""Flight SQL, asked by ADBC's driver: the way most tools connect."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from adbc_driver_flightsql import dbapi

import kquery_spark as kq
from kquery_spark.service import flight_sql_pb2 as pb
from kquery_spark.service.requests import packed
from tests.service.conftest import EMPLOYEES


@pytest.fixture
def connection(place: str) -> Iterator[object]:
    with dbapi.connect(place, autocommit=True) as connection:
        yield connection


def test_a_query_through_adbc(connection):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT state, count(*) AS n FROM employee WHERE state IS NOT NULL GROUP BY state ORDER BY state"
        )
        assert cursor.fetch_arrow_table().to_pydict() == {"state": ["CA", "CO"], "n": [1, 2]}
        cursor.execute("SELECT id, salary FROM employee WHERE id < 3 ORDER BY id")
        assert cursor.fetchall() == [(1, 12000), (2, 10000)]


def test_a_prepared_query_through_adbc(connection):
    with connection.cursor() as cursor:
        schema = cursor.adbc_prepare("SELECT max(salary) AS m FROM employee")
        assert schema.names == [], "it has no parameters"
        cursor.execute("SELECT max(salary) AS m FROM employee")
        assert cursor.fetchone() == (12000,)


def test_parameters_are_refused_with_a_sentence(connection):
    with connection.cursor() as cursor, pytest.raises(Exception, match="parameters"):
        cursor.execute("SELECT 1 + ?", (1,))


def test_errors_through_adbc_name_the_place(connection):
    with connection.cursor() as cursor, pytest.raises(dbapi.Error, match="line 1, column 8"):
        cursor.execute("SELECT nothing FROM employee")


def test_what_adbc_shows_of_the_tables(connection):
    assert connection.adbc_get_table_types() == ["TABLE"]
    assert connection.adbc_get_table_schema("employee").equals(EMPLOYEES.schema)
    objects = connection.adbc_get_objects(depth="all", table_name_filter="emp%").read_all().to_pylist()
    (schema,) = objects[0]["catalog_db_schemas"]
    (table,) = schema["db_schema_tables"]
    assert table["table_name"] == "employee" and table["table_type"] == "TABLE"
    assert [c["column_name"] for c in table["table_columns"]] == ["id", "state", "salary"]


def test_what_adbc_shows_of_the_service(connection):
    info = connection.adbc_get_info()
    assert info["vendor_name"] == "kquery_spark" and info["vendor_version"] == kq.__version__


@pytest.mark.parametrize(
    ("command", "rows"),
    [
        (pb.CommandGetTables(table_name_filter_pattern="st_tes"), ["states"]),
        (pb.CommandGetTables(table_types=["VIEW"]), []),
        (pb.CommandGetTables(catalog="other"), []),
        (pb.CommandGetTables(catalog="", db_schema_filter_pattern="%"), ["employee", "states"]),
    ],
)
def test_tables_by_their_filters(client, command, rows):
    from pyarrow import flight

    ticket = flight.Ticket(packed("CommandGetTables", command))
    assert client.do_get(ticket).read_all()["table_name"].to_pylist() == rows


def test_asked_facts_come_in_the_order_asked(client):
    from pyarrow import flight

    table = client.do_get(
        flight.Ticket(packed("CommandGetSqlInfo", pb.CommandGetSqlInfo(info=[504, 99, 0, 3])))
    ).read_all()
    assert table["info_name"].to_pylist() == [504, 0, 3]
    assert table["value"].to_pylist() == ["`", "kquery_spark", True]
    assert pa.types.is_union(table.schema.field("value").type)
