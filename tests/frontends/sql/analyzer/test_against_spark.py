"""Every query of zoo.sql on Spark and in process: the same names, types and rows, or the same class of error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import kquery_spark as kq
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


@pytest.mark.parametrize(
    "query",
    [
        "select id from t where id in (select id from u where u.v > t.big order by v limit 1)",
        "select id from t where id not in (select id from u where u.v > t.big order by v limit 1)",
        "select id from t where exists (select 1 from (select * from u where u.id = t.id order by v limit 1) q where v > 100)",
        "select id, (select max(m) from (select count(v) m from u where u.id = t.id) q) from t",
        "select count(*) from t group by (select max(v) from u where u.tag = t.name)",
        "select sum(sum(id) over ()) over () from t",
    ],
)
def test_what_would_be_another_answer_is_declined(query: str, tables: Tables):
    with pytest.raises(KQueryError, match="not supported"):
        run(query, tables)


NESTED = """
select array(1), array(id), array(1, null), array(array(1), array(id)), array(named_struct('a', 1)) from t;
select named_struct('a', 1), named_struct('a', id, 'b', 'x'), struct(id, 1), named_struct('a', array(1)) from t;
select if(flag, array(1), array(id)), coalesce(array(id), array(1)), case when flag then array(1) end from t;
select collect_list(id), collect_set(id), collect_list(struct(id)), max(array(1)), first(struct(id)) from t;
select case when flag then array(1) else array(2L) end, split(name, ','), cast(array(1) as array<bigint>) from t;
select concat(array(1), array(2, 3)), array(name) || array('x'), reverse(array(id, 1)) from t;
select array(struct(id, name)).name as a, array(struct(id, name), null).id as b from t;
select array_union(array(1), array(id)), array_except(array(1), array(id)), sort_array(array(1)) from t;
select explode(array(1, 2)) from t;
select explode(array(id)), 1 from t;
select inline(array(struct(1 as a, id as b))) from t;
select array(1) a, named_struct('a', 1) b union all select array(id), named_struct('a', id) from t;
select a, count(*) from (select array(1) a from t union all select array(id) from t) group by a;
select * from values (array(1), named_struct('a', 1)), (array(2), named_struct('a', 2));
select x.a, y.b from (select array(id) a from t) x left join (select array(1) b, named_struct('q', 1) s) y on x.a = y.b;
select max(x) from (select struct(1 as id) x union all select struct(id) from t)
"""


@pytest.fixture(scope="module")
def nested(spark: Any, tmp_path_factory: Any) -> Iterator[kq.ExecutionContext]:
    path = str(tmp_path_factory.mktemp("nested") / "t")
    spark.sql(VIEWS["t"]).coalesce(1).write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("nested_t")
    context = kq.ExecutionContext()
    context.register_parquet("nested_t", path)
    yield context
    spark.catalog.dropTempView("nested_t")


@pytest.mark.parametrize("query", [q.strip() for q in NESTED.split(";\n")])
def test_what_can_be_null_inside_of_values(query: str, spark: Any, nested: kq.ExecutionContext):
    query = query.replace("from t", "from nested_t")
    ours, sparks = nested.sql(query), spark.sql(query)
    types = [
        [(f.name, f.dataType, f.nullable) for f in s] for s in (from_arrow_schema(ours.schema), sparks.schema)
    ]
    assert types[0] == types[1]
    assert sorted(map(repr, rows(ours.to_arrow()))) == sorted(map(repr, rows(sparks.toArrow())))
