"""Columns with a default that were added to tables of the session's catalog: rows of older files have the default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import kquery_spark as kq
from tests.accelerate.checks import check
from tests.conftest import SPARK_VERSION, settings

COLUMNS = (
    "e STRING DEFAULT 'none', n INT DEFAULT 41 + 1, m DECIMAL(9, 2) DEFAULT 1.5, w DECIMAL(18, 4) DEFAULT -7.25,"
    " f FLOAT DEFAULT 0.1F, d DOUBLE DEFAULT double('NaN'), b BOOLEAN DEFAULT true, y TINYINT DEFAULT -3,"
    " day DATE DEFAULT date'1999-12-31', at TIMESTAMP DEFAULT timestamp'2020-06-01 03:04:05.000006',"
    " wall TIMESTAMP_NTZ DEFAULT timestamp_ntz'2020-06-01 03:04:05', {char}z INT, nil INT DEFAULT NULL"
)
CHAR = "c CHAR(6) DEFAULT 'ab', "
NEWER = (
    "INSERT INTO {t} (id, k) SELECT id + 1000, 3 FROM range(10)",
    "INSERT INTO {t} (id, k, e, n, m, at, d) SELECT id + 5000, 3, NULL, 7, 2.5, NULL, 0.5D FROM range(10)",
)
QUERIES = (
    "SELECT e, n, m, w, f, d, b, y, day, at, wall, z, nil, count(*), sum(k) FROM {t} GROUP BY ALL",
    "SELECT count(*), min(id), max(id) FROM {t} WHERE e = 'none' AND n = 42 AND m > 1",
    "SELECT count(n), count(z), count(e), max(day), min(wall) FROM {t} WHERE e IS NULL OR at IS NULL OR isnan(d)",
    "SELECT a.e, count(*) FROM {t} a JOIN {t} b ON a.n = b.n AND a.id = b.id GROUP BY a.e",
)


def has_char(file_format: str) -> bool:
    """Whether the table has a CHAR column: ORC files pad it, and Spark 3.5 refuses a default for it."""
    return file_format == "parquet" and SPARK_VERSION >= (4, 0)


def make(spark: Any, name: str, file_format: str) -> None:
    """A table whose first files lack the columns that have defaults."""
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, k INT, p INT) USING {file_format} PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} SELECT id, id % 5, id % 2 FROM range(100)")
    columns = COLUMNS.format(char=CHAR if has_char(file_format) else "")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({columns})")
    for statement in NEWER:
        spark.sql(
            statement.format(t=name).replace("(id, k", "(p, id, k").replace("SELECT id", "SELECT 1, id")
        )


@pytest.fixture(scope="module", params=["parquet", "orc"])
def table(spark: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"defaults_{request.param}"
    make(spark, name, request.param)
    yield name
    spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("query", QUERIES)
def test_older_files_have_the_default(spark: Any, table: str, query: str) -> None:
    check(spark.sql(query.format(t=table)), coverage=1.0)


def test_the_zone_of_the_session_decides_a_timestamp(spark: Any, table: str) -> None:
    with settings(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        check(spark.sql(f"SELECT at, count(*) FROM {table} GROUP BY at"), coverage=1.0)


def test_spark_without_its_vectorized_reader_reads_them(spark: Any, table: str) -> None:
    name = f"spark.sql.{table.rsplit('_', 1)[-1]}.enableVectorizedReader"
    with settings(spark, {name: "false"}):
        explained = kq.explain(spark.sql(f"SELECT n, count(*) FROM {table} GROUP BY n"))
    assert any(name in sentence for _, sentence in explained.reasons)


def test_chars_are_padded(spark: Any, table: str) -> None:
    if has_char(table.rsplit("_", 1)[-1]):
        check(
            spark.sql(f"SELECT c, length(c), count(*) FROM {table} WHERE c = 'ab' GROUP BY c"), coverage=1.0
        )


def test_defaults_that_spark_gives(spark: Any) -> None:
    spark.sql("CREATE TABLE wide_defaults (id BIGINT) USING parquet")
    try:
        spark.sql("INSERT INTO wide_defaults SELECT id FROM range(9)")
        spark.sql(
            "ALTER TABLE wide_defaults ADD COLUMNS (x BINARY DEFAULT X'00ff', l ARRAY<INT> DEFAULT array(1), n INT DEFAULT 1)"
        )
        check(spark.sql("SELECT n, count(id) FROM wide_defaults GROUP BY n"), coverage=1.0)
        for column in ("x", "l"):
            reasons = kq.explain(spark.sql(f"SELECT {column} FROM wide_defaults WHERE id > 3")).reasons
            assert any(f"the default of {column}" in sentence for _, sentence in reasons)
    finally:
        spark.sql("DROP TABLE wide_defaults")


@pytest.mark.skipif(SPARK_VERSION < (4, 1), reason="to_json stays with older releases")
def test_to_json_writes_nulls_of_columns_with_a_default(spark):
    spark.sql("CREATE TABLE defaults_json (a INT, b INT DEFAULT 5) USING parquet")
    spark.sql("INSERT INTO defaults_json VALUES (1, NULL)")
    for expression in ("struct(a, b)", "array(named_struct('c', b))"):
        frame = spark.sql(f"SELECT to_json({expression}) AS x FROM defaults_json")
        assert "null" in frame.collect()[0].x
        assert "to_json writes NULLs of columns that have a default" in str(kq.explain(frame))
        check(frame)
    check(
        spark.sql(
            "SELECT to_json(struct(a, nullif(b, b) AS c)) AS x, count(*) FROM defaults_json GROUP BY 1"
        ),
        1.0,
    )
    spark.sql("DROP TABLE defaults_json")
