"""Every query of zoo.sql on Spark and in process: the same names, types and rows, or the same class of error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kquery_spark.errors import KQueryError, SqlError
from tests.conftest import uncompiled
from tests.frontends.sql.analyzer.engine import Tables, rows, run, same_type

ZOO = [q.strip() for q in (Path(__file__).parent / "zoo.sql").read_text().split(";\n") if q.strip()]
VIEWS = {
    "t": """SELECT * FROM VALUES
        (1, 'a', 10L, CAST(1.5 AS DECIMAL(7,2)), DATE '2020-01-31', 1.5D, true),
        (2, 'b', 20L, CAST(2.25 AS DECIMAL(7,2)), DATE '2020-02-29', CAST('NaN' AS DOUBLE), false),
        (3, NULL, 30L, NULL, DATE '2021-03-15', -0.0D, NULL),
        (4, 'a', NULL, CAST(4.75 AS DECIMAL(7,2)), NULL, 0.0D, true),
        (NULL, 'b', 50L, CAST(-5.50 AS DECIMAL(7,2)), DATE '1999-12-31', NULL, false)
        AS t(id, name, big, dec, d, dbl, flag)""",
    "u": """SELECT * FROM VALUES (1, 'x', 100), (1, 'y', 200), (2, 'z', 300), (NULL, 'n', 400), (7, 'q', NULL)
        AS u(id, tag, v)""",
    "n": """SELECT id, array(id, id + 1) AS arr, named_struct('x', id, 'y', name) AS st, map('k', id) AS m
        FROM t WHERE id IS NOT NULL""",
    "ts": """SELECT * FROM VALUES
        (1, TIMESTAMP '2020-01-01 10:00:00'), (2, TIMESTAMP '2021-06-15 23:59:59.5'), (3, NULL) AS ts(id, at)""",
}
# Spark names another class; the query is an error in both.
OTHER_CLASS = {
    "select id from t where name + flag = 1",
    "select id as a, name as a from t order by a",
}


@pytest.fixture(scope="module")
def tables(spark: Any) -> Iterator[Tables]:
    found = {}
    for name, query in VIEWS.items():
        spark.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS {query}")
        found[name] = spark.table(name).toArrow()
    with uncompiled(spark):
        yield Tables(found)


def _error_class(error: Exception) -> str:
    found = re.search(r"\[([A-Z_0-9.]+)\]", str(error))
    return found.group(1) if found else str(error)


@pytest.mark.parametrize("query", ZOO)
def test_a_query_answers_as_spark_does(query: str, spark: Any, tables: Tables):
    try:
        wanted = spark.sql(query).toArrow()
    except Exception as error:
        with pytest.raises(KQueryError) as ours:
            run(query, tables)
        if query not in OTHER_CLASS:
            assert _error_class(ours.value) == _error_class(error)
        return
    names, table = run(query, tables)
    assert list(names) == wanted.column_names
    for name, a, b in zip(names, table.schema.types, wanted.schema.types, strict=True):
        assert same_type(a, b), f"{name}: {a} instead of {b}"
    got, expected = rows(table), rows(wanted)
    if re.search(r"\border by [^()]*$", query):
        assert got == expected
    else:
        assert sorted(map(repr, got)) == sorted(map(repr, expected))


def test_filter_over_a_window_is_declined_where_spark_raises_for_excluded_rows(spark: Any, tables: Tables):
    query = "select sum(10 div (id - 2)) filter (where id <> 2) over () from t"
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql(query).toArrow()
    with pytest.raises(SqlError, match="FILTER over a window with an argument that may raise"):
        run(query, tables)
