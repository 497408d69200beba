"""What is wrong, unknown or unsupported is an error that says where."""

from __future__ import annotations

import pytest

from kquery_spark.errors import SqlError
from kquery_spark.frontends.sql import MAX_DEPTH, parse_expression, parse_query, parse_type
from kquery_spark.frontends.sql.parser.token_stream import MAX_NESTING


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("", "no query", 1, 1),
        ("select", "expected an expression, found the end", 1, 7),
        ("select a b c", "unexpected 'c'", 1, 12),
        ("select a\nfrom t\nwher x = 1", "unexpected 'x'", 3, 6),
        ("select a from t where", "expected an expression", 1, 22),
        ("select a,, b", "expected an expression, found ','", 1, 10),
        ("select (1", r"expected '\)', found the end", 1, 10),
        ("select f(1", "to close the arguments of f", 1, 11),
        ("select a 'b'", "literals of type a are not supported", 1, 8),
        ("select 1 'b'", "unexpected a string", 1, 10),
        ("select * from a natural anti join b", "NATURAL join cannot be a LEFT ANTI join", 1, 17),
        ("select case when a then b", "expected END", 1, 26),
        ("select cast(a as foo)", "foo is not a data type", 1, 18),
        ("select 1;;", "unexpected ';'", 1, 10),
        ("select 1; select 2", "unexpected 'select'", 1, 11),
        ("select * from t tablesample (10)", "expected ROWS or PERCENT", 1, 32),
        ("select * from t tablesample (bucket 1 out of 4)", "buckets draws at random", 1, 30),
        ("select * from t x tablesample (1 rows)", "before its alias", 1, 19),
        ("select * from t pivot (sum(a) in (1))", "after the aggregates of PIVOT", 1, 37),
        ("select * from t pivot (sum(a) for b in (1)", "to close PIVOT", 1, 43),
        ("select * from t unpivot (v for n in ((a, b)))", "expected a name", 1, 38),
        ("select * from t pivot (sum(a) for b in (1)) left join u on x", "for the alias of PIVOT", 1, 45),
        ("select * from t unpivot ((v) for n in (a))", "before columns that make one row", 1, 40),
        ("select * from t version as of 1", "time travel is not supported", 1, 17),
        ("select * from t for system_time as of 'x'", "time travel is not supported", 1, 17),
        ("select a from t sort by a", "SORT BY is not supported", 1, 17),
        ("select a from t cluster by a", "CLUSTER BY is not supported", 1, 17),
        ("select a from t offset 1 limit 2", "LIMIT must come before OFFSET", 1, 26),
        ("select a from t |> where a", "pipe syntax is not supported", 1, 17),
        ("with recursive a max recursion 5 as (select 1) select 1", "after MAX RECURSION", 1, 32),
        ("select 1 /*+ x */", "unexpected '/\\*\\+'", 1, 10),
        ("insert into t values (1)", "INSERT is not supported", 1, 1),
        ("select ?", "parameters are not supported", 1, 8),
        ("select :x", "parameters are not supported", 1, 8),
        ("select a from t fetch first 1 rows only", "unexpected 'first'", 1, 23),
        ("select * from a natural join b on x", "NATURAL join takes no condition", 1, 32),
        ("select * from lateral t", "LATERAL can only stand before", 1, 15),
        ("select * from a join b join c on x on y", "unexpected 'on'", 1, 36),
        ("select foo 'x'", "literals of type foo are not supported", 1, 8),
        ("select x'zz'", "not hexadecimal", 1, 8),
        ("select a like 'x' escape 'yy'", "ESCAPE takes a string of one character", 1, 26),
        ("select * from where", "needs backticks", 1, 15),
        ("select * from values a", "need parentheses", 1, 22),
        ("select (a x)", "alias cannot stand inside parentheses", 1, 11),
    ],
)
def test_errors_carry_line_and_column(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        parse_query(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_an_error_shows_the_line_with_a_caret() -> None:
    with pytest.raises(SqlError) as caught:
        parse_query("select a,\n  b c d")
    assert str(caught.value) == "unexpected 'd' (line 2, column 7)\n  b c d\n      ^"


@pytest.mark.parametrize(
    "text",
    [
        "array",
        "decimal(39)",
        "decimal(5, 6)",
        "varchar",
        "int(3)",
        "map<int>",
        "interval second to day",
        "int x",
    ],
)
def test_types_that_do_not_exist_are_errors(text: str) -> None:
    with pytest.raises(SqlError):
        parse_type(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "(" * 5000,
        "not " * 5000 + "a",
        "- " * 5000 + "a",
        "f(" * 5000,
        "a[" * 5000,
        "case " * 5000,
        "x -> " * 5000 + "x",
        "cast(a as " + "array<" * 5000,
        "(select " * 5000,
        "exists (" * 5000,
        "substring(" * 5000 + "a from 1)",
        "dateadd(day, " * 5000,
        " || ".join(["a"] * 5000),
        "a" + "[0]" * 5000,
        "a" + "::int" * 5000,
    ],
)
def test_nesting_without_end_is_an_error_and_not_a_crash(text: str) -> None:
    with pytest.raises(SqlError):
        parse_expression(text)


def test_reasonable_nesting_is_fine() -> None:
    depth = MAX_NESTING - 10
    parse_expression("f(" * depth + "a" + ")" * depth)
    parse_expression(" || ".join(["a"] * (MAX_DEPTH - 10)))
    parse_query("select * from (" * 20 + "select 1" + ") t" * 20)
