"""Flight SQL, asked by Arrow's JDBC driver, in the JVM of the run's session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.maven import Unreachable, artifact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER = "org.apache.arrow:flight-sql-jdbc-driver:18.3.0"


@pytest.fixture(scope="module")
def driver(spark: SparkSession) -> Any:
    """A ``java.sql.Driver``, loaded apart from Spark's own Arrow, and once: py4j knows methods by the names of classes."""
    try:
        jar = artifact(DRIVER)
    except Unreachable as reason:
        pytest.skip(str(reason))
    assert jar is not None
    java = spark.sparkContext._jvm.java
    urls = spark.sparkContext._gateway.new_array(java.net.URL, 1)
    urls[0] = java.net.URL(jar.as_uri())
    loader = java.net.URLClassLoader(urls, java.lang.ClassLoader.getPlatformClassLoader())
    return loader.loadClass("org.apache.arrow.driver.jdbc.ArrowFlightJdbcDriver").newInstance()


@pytest.fixture
def connection(spark: SparkSession, driver: Any, place: str) -> Iterator[Any]:
    """A ``java.sql.Connection``."""
    properties = spark.sparkContext._jvm.java.util.Properties()
    properties.setProperty("useEncryption", "false")
    connection = driver.connect(f"jdbc:arrow-flight-sql://{place.removeprefix('grpc://')}/", properties)
    yield connection
    connection.close()


def rows(result: Any) -> list[tuple[Any, ...]]:
    """The rows of a ``java.sql.ResultSet``."""
    count = result.getMetaData().getColumnCount()
    found = []
    while result.next():
        found.append(tuple(result.getObject(i + 1) for i in range(count)))
    return found


def test_queries_through_jdbc(connection: Any) -> None:
    statement = connection.createStatement()
    sql = "SELECT state, count(*) AS n FROM employee WHERE state IS NOT NULL GROUP BY state ORDER BY state"
    result = statement.executeQuery(sql)
    assert [result.getMetaData().getColumnName(i) for i in (1, 2)] == ["state", "n"]
    assert rows(result) == [("CA", 1), ("CO", 2)]
    prepared = connection.prepareStatement("SELECT max(salary) AS m FROM employee")
    assert rows(prepared.executeQuery()) == [(12000,)]


def test_tables_and_columns_through_jdbc(connection: Any) -> None:
    facts = connection.getMetaData()
    tables = facts.getTables(None, None, "emp%", None)
    assert tables.next()
    assert tables.getString("TABLE_NAME") == "employee"
    tables.close()  # what stays open is a leak to the driver
    columns = facts.getColumns(None, None, "employee", None)
    names = []
    while columns.next():
        names.append(columns.getString("COLUMN_NAME"))
    columns.close()
    assert names == ["id", "state", "salary"]


def test_an_error_through_jdbc_names_the_place(connection: Any) -> None:
    with pytest.raises(Exception, match="line 1, column 8"):
        connection.createStatement().executeQuery("SELECT nothing FROM employee")
