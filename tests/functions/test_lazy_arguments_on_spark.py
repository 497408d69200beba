"""Arguments that Spark evaluates only for the rows that need them must not raise for the other rows."""

from __future__ import annotations

import pytest

from kquery_spark import kquery_plan
from kquery_spark.verify import compare_tables

ROWS = """SELECT * FROM VALUES
 (1, 2.5D, 4.0D, '7'), (2, double('NaN'), 1.0D, '8'), (1, NULL, 0.0D, 'x'), (NULL, 3.0D, 0.0D, 'y'), (1, 0.0D, 5.0D, '9')
 AS t(i, a, b, s)"""
QUERIES = (
    "SELECT nanvl(a, 1 / b) AS x FROM lazy_rows",
    "SELECT nanvl(a, a / b + a / b) AS x FROM lazy_rows",
    "SELECT nanvl(CAST(a AS FLOAT), CAST(1 / b AS FLOAT)) AS x FROM lazy_rows",
    "SELECT elt(i, s, CAST(CAST(s AS INT) AS STRING)) AS x FROM lazy_rows",
    "SELECT nanvl(a, 1 / b) AS x FROM lazy_rows WHERE nanvl(a, 1 / b) > 0",
    "SELECT i, elt(i, s, CAST(CAST(s AS INT) AS STRING)) AS x FROM lazy_rows "
    "WHERE elt(i, s, CAST(CAST(s AS INT) AS STRING)) > '7'",
)


@pytest.fixture(scope="module")
def lazy_rows(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("lazy") / "rows")
    spark.sql(ROWS).coalesce(1).write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("lazy_rows")
    yield
    spark.catalog.dropTempView("lazy_rows")


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_that_need_no_argument_do_not_raise(spark, lazy_rows, sql):
    frame = spark.sql(sql)
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    assert compare_tables(frame.toArrow(), fast.toArrow()) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nanvl(a, 1 / (b - 1)) FROM lazy_rows",
        "SELECT elt(3 - i, s, CAST(CAST(s AS INT) AS STRING)) FROM lazy_rows",
    ],
)
def test_rows_that_need_the_argument_raise_as_in_spark(spark, lazy_rows, sql):
    frame = spark.sql(sql)
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    words = "DIVIDE_BY_ZERO|CAST_INVALID_INPUT"
    with pytest.raises(Exception, match=words):
        frame.toArrow()
    with pytest.raises(Exception, match=words):
        fast.toArrow()
