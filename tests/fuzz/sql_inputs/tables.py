"""The tables and functions that Spark's test inputs expect: made as SQLQueryTestSuite makes them."""

from __future__ import annotations

import contextlib
from pathlib import Path

from pyspark.sql import SparkSession

_ONEK = (
    "unique1 int, unique2 int, two int, four int, ten int, twenty int, hundred int, thousand int, "
    "twothousand int, fivethous int, tenthous int, odd int, even int, stringu1 string, stringu2 string, string4 string"
)
_FILES = {
    "aggtest": ("agg.data", "a int, b float"),
    "onek": ("onek.data", _ONEK),
    "tenk1": ("tenk.data", _ONEK),
}
_LETTERS = "abcde"
TEST_TABLES = frozenset({"testdata", "arraydata", "mapdata", *_FILES})
POSTGRES_FUNCTIONS = (
    "CREATE OR REPLACE TEMPORARY FUNCTION booleq(a BOOLEAN, b BOOLEAN) RETURNS BOOLEAN RETURN a = b",
    "CREATE OR REPLACE TEMPORARY FUNCTION boolne(a BOOLEAN, b BOOLEAN) RETURNS BOOLEAN RETURN a <> b",
    "CREATE OR REPLACE TEMPORARY FUNCTION vol(s STRING) RETURNS STRING RETURN s",
)
"""Scala functions of the suite, as SQL functions of the same meaning."""


def find_test_data(inputs: Path) -> Path | None:
    """The directory ``test-data/postgresql`` of the checkout, looked for beside the parents of ``inputs``."""
    for parent in inputs.resolve().parents:
        data = parent / "test-data" / "postgresql"
        if data.is_dir():
            return data
    return None


def create_test_tables(spark: SparkSession, data: Path | None) -> None:
    """Write the suite's tables as Parquet tables of the catalog; those of files only where ``data`` has them."""
    numbers = spark.range(1, 101).selectExpr("CAST(id AS INT) AS key", "CAST(id AS STRING) AS value")
    arrays = spark.createDataFrame(
        [([1, 2, 3], [[1, 2, 3]]), ([2, 3, 4], [[2, 3, 4]])],
        "arraycol array<int>, nestedarraycol array<array<int>>",
    )
    maps = [
        ({key: f"{letter}{row}" for key, letter in enumerate(_LETTERS[: 6 - row], 1)},) for row in range(1, 6)
    ]
    frames = {
        "testdata": numbers.repartition(1),
        "arraydata": arrays,
        "mapdata": spark.createDataFrame(maps, "mapcol map<int, string>"),
    }
    for table, (file, schema) in _FILES.items():
        if data is not None and (data / file).exists():
            reader = spark.read.options(delimiter="\t", header="false").schema(schema)
            frames[table] = reader.csv(str(data / file))
    for table, frame in frames.items():
        frame.write.format("parquet").mode("overwrite").saveAsTable(table)


def remove_leftovers(session: SparkSession) -> None:
    """Drop what a file left in the catalog: tables and views of its own, databases, functions."""
    with contextlib.suppress(Exception):
        for database in session.catalog.listDatabases():
            if database.name != "default":
                _run(session, f"DROP DATABASE IF EXISTS `{database.name}` CASCADE")
    with contextlib.suppress(Exception):
        for table in session.catalog.listTables("default"):
            if not table.isTemporary and table.name not in TEST_TABLES:
                kind = "VIEW" if table.tableType == "VIEW" else "TABLE"
                _run(session, f"DROP {kind} IF EXISTS spark_catalog.default.`{table.name}`")
    with contextlib.suppress(Exception):
        for (name,) in session.sql("SHOW USER FUNCTIONS").collect():
            if "." in name:  # temporary ones end with the session
                _run(session, f"DROP FUNCTION IF EXISTS {name}")


def _run(session: SparkSession, statement: str) -> None:
    with contextlib.suppress(Exception):
        session.sql(statement)
